"""Many documents to a directory of shards: streamed, resumable, the same bytes from any workers.

The shard is the unit: `shard-00000.parquet`, then `shard-00000.json`, which says that it is whole.
A killed compile loses at most the shards in flight; `resume` keeps the others. `manifest.json` is
written last and names every file.

Paper: §4.3.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from pdt.binding import bind
from pdt.config import PdtConfig
from pdt.errors import BindingMismatch, ContractBroken, PdtError
from pdt.provenance import refuse_existing, write_json, write_manifest
from pdt.records.compile import Compiler
from pdt.records.inputs import document_files, input_digests
from pdt.records.report import CorpusReport, Seen, ShardReport, Totals
from pdt.records.work import shard_reports

CORPUS = "corpus.json"
BINDING = "binding.json"


def compile_corpus(
    inputs: Sequence[Path],
    out: Path,
    config: PdtConfig,
    *,
    workers: int = 1,
    resume: bool = False,
    progress: Callable[[ShardReport], None] = lambda report: None,
) -> CorpusReport:
    """Compile every document of `inputs` into `out`; the result does not depend on `workers`."""
    if not resume:
        refuse_existing(out, else_="add --resume")
    files = document_files(inputs)
    compiler = Compiler.load(config)
    out.mkdir(parents=True, exist_ok=True)
    bind(
        out / BINDING,
        compiler.binding,
        f"{out} was started with other settings.",
        "A corpus has one tokenizer, encoder and set of limits. Choose another --out.",
    )
    for stray in out.glob(".*.partial"):
        stray.unlink()
    totals, seen = Totals(), Seen(files)
    try:
        for report in shard_reports(files, out, config, compiler, workers):
            seen.add(report)
            totals.add(report)
            progress(report)
        if not totals.documents:
            raise ContractBroken(
                f"{', '.join(map(str, files))} hold no document.", "Give files with documents."
            )
    except PdtError:
        _leave_nothing(out)
        raise
    except OSError as error:
        _leave_nothing(out)
        raise PdtError(
            f"{out} could not be written: {error}.\n"
            "Every whole shard is kept. Free some space, then run again with --resume."
        ) from error
    _refuse_strangers(out, totals.shards)
    corpus = totals.report(compiler.binding)
    write_json(out / CORPUS, corpus.model_dump(mode="json"))
    write_manifest(
        out,
        made_by="pdt record compile",
        config=config.model_dump(mode="json"),
        inputs=input_digests(files),
    )
    return corpus


def _leave_nothing(out: Path) -> None:
    """A compile that was refused before its first shard leaves no directory behind."""
    if [path.name for path in out.iterdir()] == [BINDING]:
        (out / BINDING).unlink()
        out.rmdir()


def _refuse_strangers(out: Path, shards: Sequence[str]) -> None:
    extra = sorted({path.name for path in out.glob("shard-*.parquet")} - set(shards))
    if extra:
        raise BindingMismatch(
            f"{out} holds shards of other documents.",
            [("shards", ", ".join(extra[:3]), f"{len(shards)} shards")],
            "The input is shorter than when the compile began. Choose another --out.",
            sides=("directory", "input"),
        )


def is_corpus(path: Path) -> bool:
    """Is this a compiled directory?"""
    return (path / BINDING).is_file()
