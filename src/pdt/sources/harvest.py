"""Bundles and their candidates, judged: accepted, rejected with reasons, splits sealed.

Paper: §4.1, Table 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pdt.config import PdtConfig
from pdt.contract import parse_contract
from pdt.errors import CorruptFile, PdtError
from pdt.provenance import check_manifest, write_manifest
from pdt.sources.candidates import Candidate
from pdt.sources.reading import SourceReading, bundle_directories, read_source
from pdt.sources.source_gates import judge_source
from pdt.sources.splits import SplitLedger, write_ledger
from pdt.sources.verdict import AcceptedSource, RejectedSource
from pdt.tokenizer import StudentTokenizer

ACCEPTED = "accepted.jsonl"
REJECTED = "rejected.jsonl"
SPLITS = "splits.json"
JudgedSource = AcceptedSource | RejectedSource


@dataclass(frozen=True)
class Harvest:
    """Everything that judging needs besides the bundle."""

    candidates: dict[tuple[str, int], Candidate]
    """By wiki and revision."""
    ledger: SplitLedger
    config: PdtConfig
    tokenizer: StudentTokenizer

    def judge_bundle(self, directory: Path) -> JudgedSource:
        """One bundle; what cannot be read is rejected with that as its reason."""
        try:
            return self._judged(read_source(directory, self.config.sources.html))
        except PdtError as error:
            return _unreadable(directory, f"unreadable: {error}")
        except Exception as error:  # a page that our own code trips over must not end the run
            trouble = f"{type(error).__name__}: {error}"
            return _unreadable(directory, f"unreadable, please report it: {trouble}")

    def _judged(self, reading: SourceReading) -> JudgedSource:
        bundle = reading.bundle
        candidate = self.candidates.get((bundle.project, bundle.revision_id))
        if candidate is not None and candidate.page_id != bundle.page_id:
            candidate = None  # a generator's revision numbers are digests, and two may be equal
        verdict = judge_source(reading, candidate, self.ledger, self.config, self.tokenizer)
        family = self.ledger.family_of(candidate) if candidate else None
        if verdict.accepted and candidate is not None and family is not None:
            return AcceptedSource(
                candidate=candidate,
                split=family.split,
                family_key=family.id,
                article=reading.article,
                verdict=verdict,
            )
        return RejectedSource(
            candidate=candidate,
            bundle_id=bundle.bundle_id,
            title=bundle.title,
            reasons=tuple(verdict.reasons()),
            verdict=verdict,
        )

    def judge_all(self, root: Path) -> Iterator[JudgedSource]:
        """Every bundle under `root`, in the order of their addresses."""
        for directory in bundle_directories(root):
            yield self.judge_bundle(directory)


def _unreadable(directory: Path, reason: str) -> RejectedSource:
    name = directory.name
    return RejectedSource(candidate=None, bundle_id=name, title=name, reasons=(reason,))


def by_revision(candidates: Sequence[Candidate]) -> dict[tuple[str, int], Candidate]:
    return {(candidate.project, candidate.revision_id): candidate for candidate in candidates}


def write_harvest(
    work: Path, judged: Sequence[JudgedSource], harvest: Harvest, inputs: dict[str, str]
) -> None:
    """accepted.jsonl, rejected.jsonl, splits.json and the manifest into a new directory."""
    for name, kind in ((ACCEPTED, AcceptedSource), (REJECTED, RejectedSource)):
        lines = [one.model_dump_json() + "\n" for one in judged if isinstance(one, kind)]
        (work / name).write_text("".join(lines), encoding="utf-8")
    write_ledger(work / SPLITS, harvest.ledger)
    config = {
        "sources": harvest.config.sources.model_dump(mode="json"),
        "source_tokens": harvest.config.records.limits.source_tokens.model_dump(),
        "tokenizer_sha256": harvest.tokenizer.sha256,
        "splits_sealed": harvest.ledger.digest,
    }
    write_manifest(work, made_by="pdt source gate", config=config, inputs=inputs)


def read_judged(directory: Path) -> tuple[list[AcceptedSource], list[RejectedSource]]:
    """What `pdt source gate` wrote, after its manifest was checked."""
    check_manifest(directory, (ACCEPTED, REJECTED, SPLITS))

    def lines(name: str) -> Iterator[tuple[str, str]]:
        try:
            text = (directory / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CorruptFile(f"{directory / name} cannot be read: {error}.") from error
        for number, line in enumerate(text.split("\n")[:-1], start=1):
            yield f"{directory / name}:{number}", line

    accepted = [parse_contract(AcceptedSource, t, where=w) for w, t in lines(ACCEPTED)]
    rejected = [parse_contract(RejectedSource, t, where=w) for w, t in lines(REJECTED)]
    return accepted, rejected
