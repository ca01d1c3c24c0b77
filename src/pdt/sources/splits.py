"""Families of related pages, each in one split, fixed before any teaching and sealed by digest.

Two candidates are of one family when they share a family key, when one names the other as related,
or when both name a third page. A sealed family never moves: a later candidate joins it. A candidate
that would tie two sealed families of different splits together is refused a split, and so are all
that come with it; the old ones stay.

Paper: §4.1, Table 1.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

from pdt.config import SplitShares
from pdt.contract import Contract, Id, Line, Sha256, parse_contract
from pdt.errors import CorruptFile, UsageError
from pdt.parse import parse_json
from pdt.provenance import sha256_json, write_json
from pdt.sources.candidates import Candidate
from pdt.terms import Split


class Family(Contract):
    """Pages that tell one story, and where they fall."""

    id: Id
    """Named after the least of its first members; never changes."""
    split: Split
    """Never changes."""
    members: tuple[Line, ...]
    """Family keys (`key:…`) and pages (`page:host:title`), sorted; only ever grows."""


class SplitConflict(Contract):
    """Candidates that tie sealed families of different splits together."""

    candidates: tuple[Line, ...]
    """Their pages."""
    families: tuple[Id, ...]
    """The sealed families between which they stand."""


class SplitLedger(Contract):
    """Every family so far, sealed: the digest covers all of it and the ledger before it."""

    schema_version: Literal["pdt.splits/1"] = "pdt.splits/1"
    """The version of this contract."""
    previous: Sha256 | None = None
    """Digest of the ledger this one grew from."""
    shares: dict[str, float]
    """How new families were divided: seed, train, validation, test."""
    families: tuple[Family, ...] = ()
    """By id."""
    conflicts: tuple[SplitConflict, ...] = ()
    """Candidates without a split."""

    @cached_property
    def digest(self) -> str:
        return sha256_json(self.model_dump(mode="json"))

    @cached_property
    def _family_of_member(self) -> dict[str, Family]:
        return {member: family for family in self.families for member in family.members}

    @cached_property
    def _conflict_of_page(self) -> dict[str, SplitConflict]:
        return {page: conflict for conflict in self.conflicts for page in conflict.candidates}

    def family_of(self, candidate: Candidate) -> Family | None:
        """The candidate's family, or None when it has no split."""
        return self._family_of_member.get(page_of(candidate))

    def conflict_of(self, candidate: Candidate) -> str | None:
        """Why the candidate has no split."""
        conflict = self._conflict_of_page.get(page_of(candidate))
        if conflict is None:
            return None
        splits = {family.id: family.split for family in self.families}
        return "stands between " + " and ".join(
            f"{name} ({splits[name]})" for name in conflict.families
        )


def page_of(candidate: Candidate) -> str:
    return _page(candidate.project, candidate.title)


def seal_splits(
    candidates: Sequence[Candidate], shares: SplitShares, previous: SplitLedger | None = None
) -> SplitLedger:
    """All families of `candidates` and of the ledger before; what was sealed keeps its split."""
    old = {
        member: family
        for family in (previous.families if previous else ())
        for member in family.members
    }
    families = {family.id: family for family in (previous.families if previous else ())}
    conflicts: list[SplitConflict] = []
    for group in _groups(candidates, previous):
        touched = sorted({old[member].id for member in group.members if member in old})
        splits = {families[name].split for name in touched}
        new = [page for page in group.pages if page not in old]
        if len(splits) > 1:
            conflicts.append(
                SplitConflict(candidates=tuple(sorted(new or group.pages)), families=tuple(touched))
            )
            continue
        if len(touched) > 1:
            # Same split: each keeps its name and members; the newcomers join the first.
            members = group.members - set(old)
            first = families[touched[0]]
            families[first.id] = _grown(first, members)
        elif touched:
            families[touched[0]] = _grown(families[touched[0]], group.members)
        else:
            family = _new_family(group.members, shares)
            families[family.id] = family
    return SplitLedger(
        previous=previous.digest if previous else None,
        shares=shares.model_dump(),
        families=tuple(families[name] for name in sorted(families)),
        conflicts=tuple(sorted(conflicts, key=lambda conflict: conflict.candidates)),
    )


def write_ledger(path: Path, ledger: SplitLedger) -> None:
    write_json(path, {"sealed": ledger.digest, "ledger": ledger.model_dump(mode="json")})


def read_ledger(path: Path) -> SplitLedger:
    """The ledger, if it is what was sealed."""
    try:
        data = parse_json(path.read_text(encoding="utf-8"))
        sealed, tree = data["sealed"], data["ledger"]
    except FileNotFoundError as error:
        raise UsageError(
            f"{path} does not exist.\nGive the splits.json of an earlier run."
        ) from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CorruptFile(f"{path} is not a split ledger: {error}.\nTake it again.") from error
    ledger = parse_contract(SplitLedger, tree, where=str(path))
    if ledger.digest != sealed:
        raise CorruptFile(
            f"{path} was changed after it was sealed as {str(sealed)[:16]}….\n"
            "Splits are fixed before any teaching. Take the ledger again."
        )
    return ledger


class _Group:
    """A connected set of members, and the candidate pages in it."""

    def __init__(self) -> None:
        self.members: set[str] = set()
        self.pages: set[str] = set()


def _groups(candidates: Sequence[Candidate], previous: SplitLedger | None) -> list[_Group]:
    parent: dict[str, str] = {}

    def root(member: str) -> str:
        parent.setdefault(member, member)
        while parent[member] != member:
            parent[member] = parent[parent[member]]
            member = parent[member]
        return member

    def join(members: Iterable[str]) -> None:
        first, *others = members
        for other in others:
            a, b = sorted((root(first), root(other)))
            parent[b] = a

    pages = set()
    for candidate in candidates:
        page = page_of(candidate)
        pages.add(page)
        join(
            [
                page,
                *(f"key:{key}" for key in candidate.family_keys),
                *(_page(candidate.project, title) for title in candidate.related_pages),
            ]
        )
    for family in previous.families if previous else ():
        if any(member in parent for member in family.members):
            join(family.members)
    groups: dict[str, _Group] = defaultdict(_Group)
    for member in parent:
        groups[root(member)].members.add(member)
        if member in pages:
            groups[root(member)].pages.add(member)
    return [groups[name] for name in sorted(groups)]


def _new_family(members: set[str], shares: SplitShares) -> Family:
    least = min(members)
    draw = hashlib.sha256(f"{shares.seed}\n{least}".encode()).digest()
    place = int.from_bytes(draw[:8], "big") / 2**64
    split = (
        Split.TRAIN
        if place < shares.train
        else Split.VALIDATION
        if place < shares.train + shares.validation
        else Split.TEST
    )
    name = f"f{hashlib.sha256(least.encode()).hexdigest()[:12]}"
    return Family(id=name, split=split, members=tuple(sorted(members)))


def _grown(family: Family, members: set[str]) -> Family:
    everyone = tuple(sorted({*family.members, *members}))
    return family.model_copy(update={"members": everyone})


def _page(project: str, title: str) -> str:
    return f"page:{project}:{title.replace('_', ' ')}"
