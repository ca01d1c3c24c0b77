"""The first phase: each bundle is read, cleaned and held against Table 1, whole or not at all.

Paper: §4.1, Table 1.
"""

from dataclasses import dataclass
from functools import cached_property

from pdt.provenance import sha256_json
from pdt.records.pipeline.layout import Build
from pdt.records.pipeline.parts import PartReport, read_part, write_part
from pdt.sources.harvest import Harvest, by_revision
from pdt.sources.verdict import AcceptedSource
from pdt.tokenizer import load_tokenizer


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
            source = self._harvest.judge_bundle(directory)
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

    def _input(self, index: int) -> str:
        names = [directory.name for directory in self.build.part_bundles(index)]
        return sha256_json([names, self.build.ledger.digest])

    @cached_property
    def _harvest(self) -> Harvest:
        build = self.build
        tokenizer = load_tokenizer(build.config.records.tokenizer)
        return Harvest(by_revision(build.candidate_list), build.ledger, build.config, tokenizer)
