"""No document, however broken, crashes the compiler: it is refused, rejected or compiled."""

import json
import random
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pdt.contract import parse_contract
from pdt.errors import ContractBroken
from pdt.records.compile import Compiler
from pdt.records.schema import TrainingRecord
from pdt.records.show.html import render_page
from pdt.records.show.view import view_document
from pdt.records.verify import record_differences
from pdt.teacher.document import TaughtDocument
from tests.support.record_samples import sample, sample_compiler, train_tokenizer


@cache
def compiler() -> Compiler:
    return sample_compiler(train_tokenizer(Path(mkdtemp()) / "t.json"))


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every container of the tree with each of its keys."""
    keys = list(node) if isinstance(node, dict) else range(len(node))
    found = [(node, key) for key in keys]
    for key in keys:
        if isinstance(node[key], dict | list):
            found += places(node[key])
    return found


def break_something(data: dict[str, Any], draw: random.Random) -> None:
    node, key = draw.choice(places(data))
    old = node[key]
    if isinstance(old, bool | int | float):
        node[key] = draw.choice([0, 1, 2, 5, 99, old + 1, max(old - 1, 0)])
    elif isinstance(old, str):
        node[key] = draw.choice([old + "x", old[:-1], "f1", "owner", "absent", "", "</s>", "漢🧂"])
    elif isinstance(old, list) and old:
        draw.choice([old.pop, old.reverse, old.clear, lambda: old.append(old[0])])()
    else:
        del node[key]


@given(st.integers(0, 2**32), st.integers(1, 5))
@settings(max_examples=400, deadline=None)
def test_no_broken_document_crashes_the_compiler(seed: int, breaks: int) -> None:
    data, draw = sample(), random.Random(seed)
    for _ in range(breaks):
        break_something(data, draw)
    try:
        made = parse_contract(TaughtDocument, json.dumps(data), where="here")
    except ContractBroken:
        return
    compiled = compiler().compile(made)
    render_page(view_document(made, compiler().config, compiler().tokenizer))
    if isinstance(compiled, TrainingRecord):
        assert list(record_differences(compiled, compiler())) == []
    else:
        assert compiled
