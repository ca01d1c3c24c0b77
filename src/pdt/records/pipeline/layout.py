"""A build: what it reads, where it writes, and what its directory is bound to."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pdt.binding import bind
from pdt.config import PdtConfig
from pdt.errors import PdtError, UsageError
from pdt.lock import LOCK, hold_run
from pdt.provenance import refuse_existing, sha256_file, sha256_json
from pdt.sources.candidates import Candidate, read_candidates
from pdt.sources.reading import bundle_directories
from pdt.sources.splits import SplitLedger, read_ledger, seal_splits, write_ledger

BINDING = "binding.json"
SPLITS = "splits.json"


@dataclass(frozen=True)
class Build:
    """One corpus in the making; every process that works on it has an equal copy."""

    bundles: Path
    candidates: Path
    out: Path
    config: PdtConfig
    splits: Path | None = None
    """A ledger sealed earlier, whose families stay where they are."""
    calls: Path | None = None
    """Answered calls; the build's own directory when not given."""

    @property
    def sources_out(self) -> Path:
        return self.out / "sources"

    @property
    def taught_out(self) -> Path:
        return self.out / "taught"

    @property
    def records_out(self) -> Path:
        return self.out / "records"

    @property
    def calls_at(self) -> Path:
        return self.calls or self.out / "calls"

    @property
    def part_size(self) -> int:
        return self.config.records.shard_records

    @cached_property
    def bundle_names(self) -> Sequence[str]:
        names = [directory.name for directory in bundle_directories(self.bundles)]
        if not names:
            raise UsageError(
                f"{self.bundles} holds no bundle.\n"
                "Fill it with `pdt source fetch`, or `pdt chronicle write --bundles`."
            )
        return names

    @property
    def parts(self) -> int:
        return -(-len(self.bundle_names) // self.part_size)

    def part_bundles(self, index: int) -> list[Path]:
        names = self.bundle_names[index * self.part_size : (index + 1) * self.part_size]
        return [self.bundles / name for name in names]

    @cached_property
    def candidate_list(self) -> Sequence[Candidate]:
        return read_candidates(self.candidates)

    @cached_property
    def ledger(self) -> SplitLedger:
        """The sealed splits of this build."""
        return read_ledger(self.out / SPLITS)

    @contextmanager
    def held(self, *, resume: bool) -> Iterator[None]:
        """Open it and keep other processes out, so that no two ask a teacher for the same."""
        fresh = not self.out.exists()
        if not resume:
            refuse_existing(self.out, else_="add --resume")
        self.out.mkdir(parents=True, exist_ok=True)
        with hold_run(
            self.out, "building a corpus", "Wait for it to end, or choose another --out."
        ):
            try:
                self.open(resume=True)
            except PdtError:
                if fresh and [path.name for path in self.out.iterdir()] == [LOCK]:
                    (self.out / LOCK).unlink()
                    self.out.rmdir()
                raise
            yield

    def open(self, *, resume: bool) -> None:
        """Make or take up the output directory, and seal the splits before anything is taught."""
        if not resume:
            refuse_existing(self.out, else_="add --resume")
        binding = self._binding()
        previous = read_ledger(self.splits) if self.splits else None
        ledger = seal_splits(self.candidate_list, self.config.sources.splits, previous)
        self.out.mkdir(parents=True, exist_ok=True)
        binding["splits"] = ledger.digest
        bind(
            self.out / BINDING,
            binding,
            f"{self.out} was started with other sources or settings.",
            "A corpus is built from one list of bundles with one configuration. Choose another "
            "--out; answered calls can be taken along with --calls.",
        )
        if not (self.out / SPLITS).exists():
            write_ledger(self.out / SPLITS, ledger)
        for stray in self.out.rglob(".*.partial"):
            stray.unlink()

    def _binding(self) -> dict[str, Any]:
        names = "\n".join(self.bundle_names)
        config = self.config.model_dump(mode="json")
        endpoint = config["teacher"]["endpoint"]
        kept = ("model", "parameters", "max_output_tokens", "output_limit")
        return {
            "bundles": hashlib.sha256(names.encode()).hexdigest(),
            "candidates": sha256_file(self.candidates),
            "sources": sha256_json({**config["sources"], "fetch": None}),
            "records": sha256_json({**config["records"], "pilot": None}),
            "lanes": sha256_json([config["lanes"], config["planner"], config["notes"]]),
            "teacher": {
                "kind": config["teacher"]["kind"].replace("replay", "endpoint"),
                "attempts": config["teacher"]["attempts"],
                **{name: endpoint[name] for name in kept},
            },
        }
