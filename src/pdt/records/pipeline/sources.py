"""The first phase: each bundle is read, cleaned and held against Table 1, whole or not at all.

Paper: §4.1, Table 1.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pdt.errors import PdtError
from pdt.provenance import sha256_json
from pdt.records.pipeline.layout import Build
from pdt.records.pipeline.parts import PartReport, read_part, write_part
from pdt.sources.reading import read_source
from pdt.sources.source_gates import AcceptedSource, RejectedSource, judge
from pdt.tokenizer import StudentTokenizer, load_tokenizer


@dataclass(frozen=True)
class SourcesPhase:
    """Bundles to accepted and rejected sources."""

    build: Build
    name: str = "sources"

    @property
    def parts(self) -> int:
        return self.build.parts

    def report(self, index: int) -> PartReport | None:
        return read_part(self.build.sources_out, index, input_sha256=self._input(index))

    def run(self, index: int) -> PartReport:
        accepted: list[str] = []
        rejected: list[str] = []
        for directory in self.build.part_bundles(index):
            source = self._judge(directory)
            line = source.model_dump_json()
            (accepted if isinstance(source, AcceptedSource) else rejected).append(line)
        return write_part(
            self.build.sources_out,
            index,
            {"accepted": accepted, "rejected": rejected},
            input_sha256=self._input(index),
            counts={
                "bundles": len(accepted) + len(rejected),
                "accepted": len(accepted),
                "rejected by the source gates": len(rejected),
            },
        )

    def _judge(self, directory: Path) -> AcceptedSource | RejectedSource:
        build = self.build
        try:
            reading = read_source(directory, build.config.sources.html)
        except PdtError as error:
            why = str(error).splitlines()[0]
            return RejectedSource(
                candidate=None, bundle_id=directory.name, title=directory.name, reasons=(why,)
            )
        bundle = reading.bundle
        key = (bundle.project, bundle.page_id, bundle.revision_id)
        candidate = build.candidate_of.get(key)
        verdict = judge(reading, candidate, build.ledger, build.config, self._tokenizer)
        family = build.ledger.family_of(candidate) if candidate else None
        if not verdict.accepted or candidate is None or family is None:
            return RejectedSource(
                candidate=candidate,
                bundle_id=bundle.bundle_id,
                title=bundle.title,
                reasons=tuple(verdict.reasons()),
                verdict=verdict,
            )
        return AcceptedSource(
            candidate=candidate,
            split=family.split,
            family_key=family.id,
            article=reading.article,
            verdict=verdict,
        )

    def _input(self, index: int) -> str:
        names = [directory.name for directory in self.build.part_bundles(index)]
        return sha256_json([names, self.build.ledger.digest])

    @cached_property
    def _tokenizer(self) -> StudentTokenizer:
        return load_tokenizer(self.build.config.records.tokenizer)
