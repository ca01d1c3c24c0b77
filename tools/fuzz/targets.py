"""The ten targets: a good sample of each kind of input, and who must read it or refuse it."""

import json
import random
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from pdt.chronicle import Chronicle, ChronicleDocument
from pdt.chronicle.dials import turn_dials
from pdt.chronicle.meter import Meter
from pdt.config import load_config
from pdt.generation.replay import differences, replay
from pdt.generation.settings import GenerationSettings
from pdt.generation.trace import load_trace, save_trace, trace_of
from pdt.generation.writer import Writer
from pdt.model.build import random_model
from pdt.model.store import save_model
from pdt.provenance import MANIFEST, sha256_file, sha256_json
from pdt.records.compile import Compiler
from pdt.records.inputs import read_documents
from pdt.records.schema import TrainingRecord
from pdt.records.shards import Shard, write_shard
from pdt.sources.candidates import read_candidates
from pdt.sources.reading import article_of, read_page
from pdt.terms import Split
from pdt.tokenizer import load_tokenizer
from tools.fuzz.damage import broken_bytes, broken_json, broken_text, broken_tree
from tools.fuzz.pages import odd_page
from tools.mutate_html import KINDS, LEAK

Case = Callable[[], object]


class Target(ABC):
    """One kind of input. `place` is a directory of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place

    @abstractmethod
    def case(self, draw: random.Random) -> Case:
        """Damage a copy of the sample; the call that must read it or refuse it."""


def chronicle(index: int) -> ChronicleDocument:
    config = load_config("nano")
    meter = Meter(load_tokenizer(config.records.tokenizer))
    return Chronicle(5, Split.TRAIN, turn_dials("nano", ()), meter).document(index)


class Html(Target):
    """A Parsoid page: damaged, or made of odd inline pieces; the text may hold no markup."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.page = chronicle(0).source.raw["html"]
        self.limits = load_config("canonical").sources.html

    def case(self, draw: random.Random) -> Case:
        html = odd_page(draw)
        if draw.random() < 0.6:
            html = draw.choice(KINDS)(draw.choice((html, self.page)), draw)

        def read() -> None:
            text = article_of(read_page(html, self.limits, where="a page"), "0" * 64, "T").text
            if found := LEAK.search(text):
                raise AssertionError(f"markup {found[0]!r} in the text")

        return read


class Yaml(Target):
    """A configuration file."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.text = (resources.files("pdt") / "presets" / "tiny.yaml").read_text(encoding="utf-8")

    def case(self, draw: random.Random) -> Case:
        file = self.place / "config.yaml"
        text = self.text
        for _ in range(draw.choice((1, 1, 2))):
            text = broken_text(text, draw)
        file.write_bytes(text.encode(errors="surrogatepass"))
        return lambda: load_config("canonical", file=file)


class Set(Target):
    """`--set a.b=c`, of a configuration and of generation."""

    samples = (
        "lanes.count=2", "trunk.shape.rope.theta=1.5", "records.limits={facts: {min: 1}}",
        "training.stages=[{steps: 3}]", "notes.condition=bus", "top_p=0.9", "stop=[a, b]",
    )  # fmt: skip

    def case(self, draw: random.Random) -> Case:
        from pdt.generation.settings import settings_from

        text = broken_text(draw.choice(self.samples), draw)
        if draw.random() < 0.3:
            return lambda: settings_from([text])
        return lambda: load_config("tiny", overrides=[text])


class Documents(Target):
    """Taught documents, through the compiler."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.data = chronicle(1).taught.model_dump_json().encode()
        self.compiler = Compiler.load(load_config("nano"))

    def case(self, draw: random.Random) -> Case:
        file = self.place / "documents.jsonl"
        file.write_bytes(broken_json(self.data, draw) + b"\n")
        return lambda: [self.compiler.compile(taught) for _, taught in read_documents([file])]


class Candidates(Target):
    """A reviewer's list, as YAML and as JSON lines."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.entries = [
            {
                "title": f"Siege of Vell {number}",
                "page_id": number,
                "revision_id": 70 + number,
                "topic": "event",
                "category": "siege",
                "event_end_year": 1402,
                "event_end_date": "1402-05-01",
                "family_keys": ["vell"],
                "related_pages": ["Vell"],
                "reviewer": "A. Reader",
                "reviewed_on": "2026-01-02",
            }
            for number in (1, 2)
        ]

    def case(self, draw: random.Random) -> Case:
        if draw.random() < 0.5:
            file = self.place / "candidates.yaml"
            text = broken_text(yaml.safe_dump(self.entries), draw)
            file.write_bytes(text.encode(errors="surrogatepass"))
        else:
            file = self.place / "candidates.jsonl"
            lines = [json.dumps(entry).encode() for entry in self.entries]
            lines[0] = broken_json(lines[0], draw)
            file.write_bytes(b"\n".join(lines))
        return lambda: read_candidates(file)


class Model(Target):
    """A model directory as it is: the manifest no longer fits."""

    signed = False

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        config = load_config("tiny")
        tokenizer = load_tokenizer(load_config("nano").records.tokenizer)
        overrides = [
            f"trunk.shape.vocabulary={tokenizer.vocabulary}",
            f"records.tokenizer.eos={json.dumps(tokenizer.eos)}",
        ]
        model = random_model(load_config("tiny", overrides=overrides))
        model.tokenizer = tokenizer
        assert config.lanes.count == model.config.lanes.count
        save_model(model, place / "good", with_trunk=True)

    def case(self, draw: random.Random) -> Case:
        copy = self.place / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.place / "good", copy)
        names = sorted(path.name for path in copy.iterdir())
        name = draw.choice([n for n in names if n != MANIFEST] if self.signed else names)
        file = copy / name
        if name.endswith(".json"):
            file.write_bytes(broken_json(file.read_bytes(), draw))
        elif name.endswith(".safetensors") and draw.random() < 0.7:
            file.write_bytes(broken_header(file.read_bytes(), draw))
        else:
            file.write_bytes(broken_bytes(file.read_bytes(), draw))
        if draw.random() < 0.05:
            file.unlink()
        elif self.signed:
            sign(copy, name)
        settings = GenerationSettings(max_tokens=5)
        return lambda: Writer.load(copy).generate("A siege.", "Tell it.", settings)


class SignedModel(Model):
    """A model directory whose manifest was made to fit what was damaged."""

    signed = True


def broken_header(data: bytes, draw: random.Random) -> bytes:
    """A safetensors file whose header says something else."""
    length = int.from_bytes(data[:8], "little")
    text = broken_tree(json.loads(data[8 : 8 + length]), draw).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def sign(directory: Path, name: str) -> None:
    """The manifest names the file as it is now."""
    manifest = json.loads((directory / MANIFEST).read_text())
    file = directory / name
    manifest["files"][name] = {"bytes": file.stat().st_size, "sha256": sha256_file(file)}
    (directory / MANIFEST).write_text(json.dumps(manifest))


class Trace(Model):
    """A saved generation as it is: its digest no longer fits."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.writer = Writer.load(place / "good")
        generation = self.writer.begin([("A siege.", "Tell it.")], GenerationSettings(max_tokens=9))
        for _ in generation.events():
            pass
        save_trace(trace_of(generation), place / "trace.json")
        self.saved: dict[str, Any] = json.loads((place / "trace.json").read_text())

    def case(self, draw: random.Random) -> Case:
        file = self.place / "damaged.json"
        saved = json.loads(json.dumps(self.saved))
        if self.signed:
            try:
                body = json.loads(broken_tree(saved["trace"], draw))
                saved = {"digest": sha256_json(body), "trace": body}
                file.write_text(json.dumps(saved), encoding="utf-8")
            except (ValueError, RecursionError):  # nobody can sign what is no JSON
                file.write_bytes(broken_json(json.dumps(saved).encode(), draw))
        else:
            file.write_bytes(broken_json(json.dumps(saved).encode(), draw))

        def again() -> None:
            trace = load_trace(file)
            generation = replay(self.writer.model, trace, self.writer.tokenizer)
            for _ in generation.events():
                pass
            differences(trace, generation)

        return again


class SignedTrace(Trace):
    """A saved generation whose digest was made to fit what was damaged."""

    signed = True


class Shards(Target):
    """Records in Parquet: bytes damaged, or columns written again with other values."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        compiler = Compiler.load(load_config("nano"))
        record = compiler.compile(chronicle(2).taught)
        assert isinstance(record, TrainingRecord)
        write_shard(place / "good.parquet", [record], compiler.binding)
        self.table = pq.read_table(place / "good.parquet")
        self.data = (place / "good.parquet").read_bytes()

    def case(self, draw: random.Random) -> Case:
        file = self.place / "shard.parquet"
        if draw.random() < 0.5:
            file.write_bytes(broken_bytes(self.data, draw))
        else:
            pq.write_table(self._changed(draw), file)
        return lambda: list(Shard(file).records())

    def _changed(self, draw: random.Random) -> pa.Table:
        place = draw.randrange(self.table.num_columns)
        field = self.table.schema.field(place)
        kind = draw.randrange(5)
        if kind == 0:
            return self.table.remove_column(place)
        if kind == 1 and pa.types.is_string(field.type):
            bad = pa.array([draw.choice((b"\xff\xfe", b"\xed\xa0\x80", b""))])
            column = pa.Array.from_buffers(field.type, 1, bad.buffers())
        elif kind == 2 and pa.types.is_integer(field.type):
            column = pa.array([draw.choice((-1, 0, 1, 2**31 - 1, 99))], field.type)
        elif kind == 3 and pa.types.is_list(field.type):
            value = self.table.column(place).to_pylist()[0]
            column = pa.array([draw.choice(([], value[:-1], value * 2))], field.type)
        else:
            footer = dict(self.table.schema.metadata)
            key = draw.choice(list(footer))
            return self.table.replace_schema_metadata(
                footer | {key: broken_json(footer[key], draw) if b"bind" in key else b"x"}
            )
        return self.table.set_column(place, field, column)


TARGETS: dict[str, type[Target]] = {
    "html": Html,
    "yaml": Yaml,
    "set": Set,
    "documents": Documents,
    "model": Model,
    "signed-model": SignedModel,
    "trace": Trace,
    "signed-trace": SignedTrace,
    "candidates": Candidates,
    "shards": Shards,
}
