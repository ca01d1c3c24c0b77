"""Chronicle's bundles with what a reviewer would have said of them, for `pdt corpus build`.

Its splits are sealed when it writes: wording itself differs between them.

Paper: §4.1, Table 1.
"""

import datetime
from pathlib import Path

from pdt.chronicle.document import ChronicleDocument
from pdt.chronicle.markup import GENERATOR, WRITTEN_AT
from pdt.config import SplitShares
from pdt.provenance import write_json
from pdt.sources.bundle import write_bundle
from pdt.sources.candidates import Candidate
from pdt.sources.splits import Family, SplitLedger, page_of, write_ledger
from pdt.terms import Topic

BUNDLES, LISTS = "bundles", "candidates"
CANDIDATES, SPLITS, IDS = "candidates.jsonl", "splits.json", "ids.json"


class SourceWriter:
    """Bundles, candidates, splits, and which record each bundle belongs to."""

    def __init__(self, directory: Path, shares: SplitShares) -> None:
        self.directory = directory
        self.shares = shares
        self._ids: dict[str, str] = {}
        self._families: dict[str, Family] = {}
        self._candidates: list[Candidate] = []

    def add(self, document: ChronicleDocument) -> None:
        bundle, taught = document.source.bundle, document.taught
        write_bundle(self.directory / BUNDLES, bundle, document.source.raw)
        candidate = Candidate(
            project=GENERATOR,
            title=bundle.title,
            page_id=bundle.page_id,
            revision_id=bundle.revision_id,
            topic=Topic.EVENT,
            category=taught.category,
            event_end_year=document.world.ended,
            family_keys=(taught.family_key,),
            reviewer="Chronicle",
            reviewed_on=datetime.datetime.fromisoformat(WRITTEN_AT).date(),
        )
        self._candidates.append(candidate)
        self._ids[bundle.bundle_id] = taught.record_id
        self._families[taught.family_key] = Family(
            id=taught.family_key,
            split=taught.split,
            members=tuple(sorted({f"key:{taught.family_key}", page_of(candidate)})),
        )

    def close(self) -> None:
        """Write what is about all of them."""
        # In a folder of their own: every .json and .jsonl beside the documents is read as one.
        root = self.directory / LISTS
        root.mkdir()
        with (root / CANDIDATES).open("w", encoding="utf-8") as file:
            file.writelines(candidate.model_dump_json() + "\n" for candidate in self._candidates)
        families = tuple(self._families[name] for name in sorted(self._families))
        write_ledger(root / SPLITS, SplitLedger(shares=self.shares.model_dump(), families=families))
        write_json(root / IDS, dict(sorted(self._ids.items())))
