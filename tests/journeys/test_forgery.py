"""`pdt verify` against changed files and numbers, also where every digest was computed again."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pdt.contract import Contract
from pdt.errors import PdtError
from pdt.evaluation.lines.execution import Execution
from pdt.evaluation.report.results import Results
from pdt.evaluation.report.write import MADE_BY
from pdt.evaluation.verify.verify import Verified, verify_results
from pdt.provenance import MANIFEST, write_manifest
from tests.support.evaluations import Ran


@pytest.mark.paper("§7.2")
def test_a_whole_result_verifies(copy: Path, ran: Ran) -> None:
    assert verify_results(copy) == Verified(ran[1], len(ran[0].judgments), ())


NAMES = [
    "documents.jsonl", "generations.jsonl", "coined.jsonl", "judgments.jsonl",
    "likelihoods.jsonl", "execution.json", "results.json", "report.md", "report.html",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_or_missing_file_is_found(copy: Path, name: str) -> None:
    text = (copy / name).read_text()
    (copy / name).write_text(text.replace("1", "2", 1))
    with pytest.raises(PdtError, match=name):
        verify_results(copy)
    (copy / name).unlink()
    with pytest.raises(PdtError, match=name):
        verify_results(copy)
    rewrite_manifest(copy)
    with pytest.raises(PdtError, match=f"does not name {name}"):
        verify_results(copy)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_no_text_is_found(copy: Path, name: str) -> None:
    (copy / name).write_bytes(b"\xff\xfe" + (copy / name).read_bytes())
    rewrite_manifest(copy)
    with pytest.raises(PdtError, match=f"{name} is not UTF-8|{name}: does not show"):
        verify_results(copy)


def rewrite_manifest(directory: Path) -> None:
    """What a careful forger does: every digest fits again."""
    manifest = json.loads((directory / MANIFEST).read_text())
    write_manifest(directory, made_by=MADE_BY, config=manifest["config"], inputs=manifest["inputs"])


def edit_json(path: Path, edit: Callable[[Any], None]) -> None:
    """As pdt itself would have written it: only the number gives the forger away."""
    kinds: dict[str, type[Contract]] = {"results.json": Results, "execution.json": Execution}
    tree = json.loads(path.read_text())
    edit(tree)
    if path.name in kinds:
        path.write_text(kinds[path.name].model_validate(tree).model_dump_json(indent=2) + "\n")
    else:
        path.write_text(json.dumps(tree))


def edit_line(path: Path, edit: Callable[[Any], None]) -> None:
    """The first line, or the first in which something is coined."""
    trees = [json.loads(line) for line in path.read_text().splitlines()]
    edit(next((tree for tree in trees if tree.get("choices")), trees[0]))
    path.write_text("".join(json.dumps(tree) + "\n" for tree in trees))


def better_recall(tree: Any) -> None:
    tree["measures"]["oracle.owner_recall"]["estimate"] = 0.99


def better_gate(tree: Any) -> None:
    gate = tree["gates"][0]
    gate["verdict"] = "unmet" if gate["verdict"] == "met" else "met"


def other_seed(tree: Any) -> None:
    tree["settings"]["seed"] = 5


def other_checkpoint(tree: Any) -> None:
    tree["models"]["bus"] = "1" * 64


def hidden_checkpoint(tree: Any) -> None:
    del tree["models"]["self_only"]


def kinder_judgment(tree: Any) -> None:
    tree["judged"]["stated_KF"][0][0] = 1


def other_dependencies(tree: Any) -> None:
    tree["dependency_tokens"] = [[0, 1], [], []]


def better_likelihood(tree: Any) -> None:
    tree["nll"][0][0] -= 1.0


def invented_condition(tree: Any) -> None:
    tree["condition"] = "no_such"


def other_words(tree: Any) -> None:
    for lane in tree["lanes"]:
        lane["text"] = "A lane wrote this."


def faster_round(tree: Any) -> None:
    tree["runs"][0]["seconds"] /= 2


@pytest.mark.parametrize(
    ("name", "edit", "found"),
    [
        ("results.json", better_recall, r"oracle\.owner_recall is"),
        ("results.json", better_gate, "gates do not follow"),
        ("results.json", other_seed, "settings are not those"),
        ("results.json", other_checkpoint, "checkpoints are not those"),
        ("results.json", hidden_checkpoint, "checkpoints are not those"),
        ("judgments.jsonl", kinder_judgment, "is not what the texts say"),
        ("documents.jsonl", other_dependencies, "the stored lines give"),
        ("likelihoods.jsonl", better_likelihood, "the stored lines give"),
        ("generations.jsonl", invented_condition, "line 1 is of no such run: no_such"),
        ("generations.jsonl", other_words, "text of lane 0 that its tokens do not say"),
        ("coined.jsonl", invented_condition, "line 1 is of no such run: no_such"),
        ("execution.json", faster_round, "the stored lines give"),
    ],
)
def test_a_forged_number_is_found_even_when_every_digest_fits(
    copy: Path, name: str, edit: Callable[[Any], None], found: str
) -> None:
    rewrite = edit_json if name.endswith(".json") else edit_line
    rewrite(copy / name, lambda tree: None)
    rewrite_manifest(copy)
    verify_results(copy)  # writing it again is no forgery
    rewrite(copy / name, edit)
    rewrite_manifest(copy)
    with pytest.raises(PdtError, match=found):
        verify_results(copy)


def put(tree: Any, name: str, value: Any) -> None:
    tree[name] = value


def lane_that_is_not_there(tree: Any) -> None:
    tree["facts"][0]["owner_lane"] = 9


def no_alternatives(tree: Any) -> None:
    tree["choices"][0]["alternatives"] = []


def one_lane_less(tree: Any) -> None:
    tree["lanes"].pop()


def strange_token(tree: Any) -> None:
    tree["lanes"][0]["tokens"][0] = -1


def empty_lane(tree: Any) -> None:
    tree["lanes"][0]["tokens"] = []


def one_nll_less(tree: Any) -> None:
    tree["nll"].pop()


def choice_left_out(tree: Any) -> None:
    tree["choices"].popitem()


def fact_left_out(tree: Any) -> None:
    tree["judged"]["stated_KF"][0].pop()


def untimed_part(tree: Any) -> None:
    tree["runs"][0]["prefill_seconds"] = None


@pytest.mark.parametrize(
    ("name", "edit", "found"),
    [
        ("documents.jsonl", lane_that_is_not_there, "names lane 9 of 3"),
        ("documents.jsonl", no_alternatives, "2.h alternatives"),
        ("documents.jsonl", partial(put, name="section_lengths", value=[9]), "have 3 lanes"),
        ("generations.jsonl", partial(put, name="lane_of_plan", value=[0, 1, 7]), "lane once"),
        ("generations.jsonl", partial(put, name="lane_at_position", value=[0]), "lane once"),
        ("generations.jsonl", one_lane_less, "has 2 lanes of 3"),
        ("generations.jsonl", strange_token, "has a token that is not one of"),
        ("generations.jsonl", empty_lane, "has a lane of 0 tokens"),
        ("likelihoods.jsonl", one_nll_less, "does not score every token"),
        ("likelihoods.jsonl", choice_left_out, "does not score the document's choices"),
        ("judgments.jsonl", fact_left_out, "is not a table of lanes and facts"),
        ("execution.json", untimed_part, "does not time its parts"),
    ],
)
def test_a_line_that_cannot_be_measured_is_refused_by_its_place(
    copy: Path, name: str, edit: Callable[[Any], None], found: str
) -> None:
    (edit_json if name.endswith(".json") else edit_line)(copy / name, edit)
    rewrite_manifest(copy)
    with pytest.raises(PdtError, match=found):
        verify_results(copy)


def test_an_answer_that_took_no_time_is_refused(copy: Path) -> None:
    path = copy / "execution.json"
    tree = json.loads(path.read_text())
    tree["runs"][0]["seconds"] = 0
    path.write_text(json.dumps(tree))
    rewrite_manifest(copy)
    with pytest.raises(PdtError, match=r"execution\.json is not a Execution"):
        verify_results(copy)


def no_bytes(tree: Any) -> None:
    del tree["files"]["report.md"]["bytes"]


@pytest.mark.parametrize(
    ("edit", "found"),
    [
        (lambda tree: tree.pop("config"), "names no config"),
        (partial(put, name="config", value=None), "names no config"),
        (lambda tree: tree.pop("inputs"), "names no inputs"),
        (lambda tree: tree["config"].pop("model"), "names no model"),
        (lambda tree: tree["config"]["model"].pop("lanes"), "lanes"),
        (lambda tree: put(tree["config"], "records", None), "names no records"),
        (lambda tree: put(tree["config"], "calibration", 5), "names no calibration"),
        (lambda tree: put(tree["config"], "calibration", {}), "is not a Calibration"),
        (lambda tree: tree["inputs"].pop("records"), "names no records"),
        (no_bytes, "does not say the bytes and sha256 of report.md"),
        (lambda tree: put(tree["files"], "report.md", 5), "does not say the bytes and sha256"),
    ],
)
def test_a_manifest_that_is_not_whole_is_refused(
    copy: Path, edit: Callable[[Any], None], found: str
) -> None:
    edit_json(copy / MANIFEST, edit)
    with pytest.raises(PdtError, match=found):
        verify_results(copy)


@pytest.mark.parametrize("name", ["report.md", "report.html"])
def test_a_report_that_shows_other_numbers_is_found(copy: Path, name: str) -> None:
    (copy / name).write_text((copy / name).read_text().replace("0.0%", "9.9%", 1))
    rewrite_manifest(copy)
    with pytest.raises(PdtError, match="does not show the stored numbers"):
        verify_results(copy)


def test_a_stray_file_is_found(copy: Path) -> None:
    (copy / "extra.txt").write_text("x")
    with pytest.raises(PdtError, match=r"extra\.txt"):
        verify_results(copy)


@pytest.mark.parametrize(
    ("edit", "found"),
    [
        (lambda tree: tree["config"]["settings"].update(documents=9), "settings"),
        (lambda tree: tree["config"]["model"]["training"].update(seed=9), "made from"),
        (lambda tree: tree["config"]["records"]["objective"].update(note=9.0), "made from"),
        (lambda tree: tree["inputs"].update(records="8" * 64), "made from"),
    ],
)
def test_a_changed_config_is_found(copy: Path, edit: Callable[[Any], None], found: str) -> None:
    edit_json(copy / MANIFEST, edit)
    with pytest.raises(PdtError, match=found):
        verify_results(copy)
