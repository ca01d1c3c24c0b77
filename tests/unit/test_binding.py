"""A directory goes on with what it was begun with, or says what is different."""

import re
from pathlib import Path

import pytest

from pdt.binding import bind, refuse_other
from pdt.errors import BindingMismatch

BEGUN = {"seed": 1, "records": {"digest": "a" * 64, "documents": 5}, "distances": (1, 4)}


def refused(bound: dict[str, object], given: dict[str, object]) -> str:
    with pytest.raises(BindingMismatch) as error:
        refuse_other(bound, given, "It was begun otherwise.", "Begin another.")
    return str(error.value)


def test_a_directory_is_taken_up_with_what_it_was_begun_with(tmp_path: Path) -> None:
    file = tmp_path / "binding.json"
    bind(file, BEGUN, "other", "remedy")
    written = file.read_bytes()
    bind(file, BEGUN, "other", "remedy")
    with pytest.raises(BindingMismatch, match=r"seed +directory 1 +now 2"):
        bind(file, {**BEGUN, "seed": 2}, "other", "remedy")
    assert file.read_bytes() == written


def test_every_leaf_that_differs_is_named_and_no_other() -> None:
    given = {**BEGUN, "records": {"digest": "b" * 64, "documents": 5}, "added": None, "more": [2]}
    said = refused(BEGUN, given).splitlines()
    assert said[0] == "It was begun otherwise." and said[-1] == "Begin another."
    assert [line.split()[0] for line in said[1:-1]] == ["more", "records.digest"]
    assert re.search(r"records\.digest +directory a{16} +now b{16}$", said[2])


def test_a_long_value_does_not_fill_the_screen() -> None:
    said = refused({"documents": list(range(1000))}, {"documents": []})
    assert max(map(len, said.splitlines())) < 120


def test_what_is_free_may_differ() -> None:
    refuse_other(BEGUN, {**BEGUN, "records": None}, "other", "remedy", free=("records",))
