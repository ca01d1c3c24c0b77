"""Families fall into one split, sealed, and never move."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from pdt.config import load_config
from pdt.errors import CorruptFile
from pdt.sources.candidates import Candidate
from pdt.sources.splits import SplitLedger, read_ledger, seal_splits, write_ledger

pytestmark = pytest.mark.paper("§4.1", "Table 1")
SHARES = load_config("canonical").sources.splits


def candidate(
    title: str, *, keys: tuple[str, ...] = (), related: tuple[str, ...] = ()
) -> Candidate:
    number = sum(map(ord, title)) * 1000 + len(title)
    data: dict[str, Any] = {
        "title": title,
        "page_id": number,
        "revision_id": number,
        "topic": "event",
        "category": "wars",
        "event_end_year": 1800,
        "family_keys": keys or (f"of-{title.replace(' ', '-')}",),
        "related_pages": related,
        "reviewer": "a test",
        "reviewed_on": "2026-11-15",
    }
    return Candidate.model_validate(data)


def split_of(ledger: SplitLedger, one: Candidate) -> Any:
    family = ledger.family_of(one)
    return family and (family.id, family.split)


def test_a_shared_key_a_named_page_and_a_common_third_page_make_one_family() -> None:
    a = candidate("A", keys=("war",))
    b = candidate("B", keys=("war", "sea"))
    c = candidate("C", related=("B",))
    d = candidate("D", related=("A third page",))
    e = candidate("E", related=("A_third_page",))
    f = candidate("F")
    ledger = seal_splits([a, b, c, d, e, f], SHARES)
    assert split_of(ledger, a) == split_of(ledger, b) == split_of(ledger, c)
    assert split_of(ledger, d) == split_of(ledger, e)
    assert len({split_of(ledger, one)[0] for one in (a, d, f)}) == 3


def test_the_order_of_candidates_changes_nothing() -> None:
    many = [candidate(f"P{n}", keys=(f"k{n % 17}",)) for n in range(60)]
    shuffled = many[:]
    random.Random(3).shuffle(shuffled)
    assert seal_splits(many, SHARES).digest == seal_splits(shuffled, SHARES).digest


def test_new_families_are_divided_by_the_shares() -> None:
    ledger = seal_splits([candidate(f"Page {n}") for n in range(2000)], SHARES)
    train = sum(family.split == "train" for family in ledger.families)
    assert 0.77 < train / 2000 < 0.83
    assert {family.split for family in ledger.families} == {"train", "validation", "test"}


def test_adding_articles_later_never_moves_an_old_one() -> None:
    stream = random.Random(5)
    old: list[Candidate] = []
    ledger: SplitLedger | None = None
    before: dict[str, Any] = {}
    for batch in range(6):
        old += [
            candidate(
                f"Page {batch}-{n}",
                keys=tuple(f"k{stream.randrange(40)}" for _ in range(stream.randrange(1, 3))),
            )
            for n in range(15)
        ]
        ledger = seal_splits(old, SHARES, ledger)
        for title, where in before.items():
            assert split_of(ledger, candidate(title)) == where
        before = {
            one.title: split_of(ledger, one) for one in old if ledger.family_of(one) is not None
        }
    assert ledger is not None and ledger.conflicts


def two_splits() -> tuple[Candidate, Candidate, SplitLedger]:
    """Two sealed candidates that fell into different splits."""
    pages = [candidate(f"Page {n}") for n in range(200)]
    ledger = seal_splits(pages, SHARES)
    first = pages[0]
    other = next(p for p in pages if split_of(ledger, p)[1] != split_of(ledger, first)[1])
    return first, other, ledger


def test_a_page_between_two_splits_gets_none_and_the_old_ones_stay() -> None:
    a, b, before = two_splits()
    bridge = candidate("Bridge", related=(a.title, b.title))
    after = seal_splits([a, b, bridge], SHARES, before)
    assert after.family_of(bridge) is None
    assert "stands between" in (after.conflict_of(bridge) or "")
    for one in (a, b):
        assert split_of(after, one) == split_of(before, one)
        assert after.conflict_of(one) is None


def test_a_tie_found_later_between_two_old_pages_is_reported_on_both() -> None:
    a, b, before = two_splits()
    tied = a.model_copy(update={"related_pages": (b.title,)})
    after = seal_splits([tied, b], SHARES, before)
    assert split_of(after, a) == split_of(before, a)
    assert "stands between" in (after.conflict_of(tied) or "")
    assert "stands between" in (after.conflict_of(b) or "")


def test_a_ledger_is_sealed_and_names_the_one_before(tmp_path: Path) -> None:
    first = seal_splits([candidate("A")], SHARES)
    second = seal_splits([candidate("A"), candidate("B")], SHARES, first)
    assert second.previous == first.digest
    path = tmp_path / "splits.json"
    write_ledger(path, second)
    assert read_ledger(path) == second
    data = json.loads(path.read_text())
    data["ledger"]["families"][0]["split"] = "test"
    data["ledger"]["families"][1]["split"] = "test"
    path.write_text(json.dumps(data))
    with pytest.raises(CorruptFile, match="changed after it was sealed"):
        read_ledger(path)
