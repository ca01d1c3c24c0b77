"""The NLI threshold: calibrated once, on prose that is not evaluated."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from pdt.errors import BindingMismatch, ContractBroken, CorruptFile, UsageError
from pdt.evaluation.generate.batches import teacher_prose
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.screens.calibration import (
    Calibration,
    calibrate,
    check_disjoint,
    freeze,
    read_calibration,
)
from pdt.evaluation.screens.nli import NliScreen, evidence_scores, load_cross_encoder
from pdt.evaluation.screens.nli_train import read_pairs
from pdt.terms import Split
from pdt.tokenizer import load_tokenizer
from tests.support.evaluations import chronicle_shards, held_out_pairs

Prose = list[tuple[HeldOutDocument, list[str]]]


class WordOverlap:
    """An independent, simple judge of entailment: the share of a claim's words in the premise."""

    identity = "word-overlap"

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        def words(text: str) -> set[str]:
            return {word.strip(".,").casefold() for word in text.split()}

        return [len(words(a) & words(b)) / len(words(b)) for a, b in pairs]


def scores(claims: Sequence[str], lanes: Sequence[str]) -> list[list[float]]:
    return evidence_scores(WordOverlap(), claims, lanes)


@pytest.fixture(scope="module")
def prose(tmp_path_factory: pytest.TempPathFactory) -> Prose:
    path = tmp_path_factory.mktemp("validation")
    shards, config = chronicle_shards(path, 8, Split.VALIDATION)
    return teacher_prose(shards, load_tokenizer(config.records.tokenizer), documents=8)


@pytest.fixture(scope="module")
def frozen(prose: Prose) -> Calibration:
    return calibrate("word-overlap", scores, prose)


@pytest.mark.paper("§7.2")
def test_the_threshold_parts_true_claims_from_hard_negatives(frozen: Calibration) -> None:
    balanced = (frozen.finds + (frozen.refuses_hard_negatives + frozen.refuses_absent) / 2) / 2
    assert balanced > 0.75
    assert frozen.refuses_absent > 0.95
    assert len(frozen.documents) == 8


@pytest.mark.paper("§7.2")
def test_a_lane_that_never_ends_a_sentence_is_read_to_its_end() -> None:
    read: list[str] = []

    class Reader:
        identity = "reader"

        def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
            read.extend(premise for premise, _ in pairs)
            return [0.0] * len(pairs)

    words = [f"w{n}" for n in range(205)]
    evidence_scores(Reader(), ["A claim."], [" ".join(words)])
    assert max(len(premise.split()) for premise in read) <= 80
    near = [f"{a} {b}" for a, b in pairwise(words)]
    assert all(any(pair in premise for premise in read) for pair in near)


def test_the_test_split_cannot_be_calibrated_on(prose: Prose) -> None:
    document, lanes = prose[0]
    test = document.model_copy(update={"split": Split.TEST})
    with pytest.raises(ContractBroken, match="evaluation text"):
        calibrate("word-overlap", scores, [*prose[1:], (test, lanes)])


@pytest.mark.paper("§7.2")
@pytest.mark.parametrize("shared", ["record_id", "family_key", "text_sha256"])
def test_a_document_that_was_calibrated_on_is_not_evaluated_on(
    frozen: Calibration, prose: Prose, shared: str, tmp_path: Path
) -> None:
    """By id, by family and by text: renaming a document does not help."""
    evaluated = [document for document, _ in held_out_pairs(chronicle_shards(tmp_path, 2)[0])]
    check_disjoint(frozen, evaluated)
    sly = evaluated[0].model_copy(update={shared: getattr(prose[0][0], shared)})
    with pytest.raises(ContractBroken, match=shared):
        check_disjoint(frozen, [*evaluated, sly])


@pytest.mark.paper("§7.2")
def test_a_frozen_threshold_is_never_written_over(frozen: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    freeze(frozen, path)
    assert read_calibration(path) == frozen
    with pytest.raises(UsageError, match="calibrated once"):
        freeze(frozen.model_copy(update={"threshold": 0.1}), path)
    assert read_calibration(path) == frozen


def test_a_calibration_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_bytes(b"\xff{}")
    with pytest.raises(CorruptFile, match="is not UTF-8"):
        read_calibration(path)


@pytest.mark.parametrize("absent", ["tokenizer.json", "config.json"])
def test_a_cross_encoder_without_one_of_its_files_is_refused(tmp_path: Path, absent: str) -> None:
    for name in {"model.safetensors", "tokenizer.json", "config.json"} - {absent}:
        (tmp_path / name).write_text("{}")
    with pytest.raises(UsageError, match=f"holds no {absent}"):
        load_cross_encoder(str(tmp_path))


def test_a_threshold_belongs_to_its_cross_encoder(frozen: Calibration) -> None:
    other = frozen.model_copy(update={"encoder": "another model"})
    with pytest.raises(BindingMismatch, match="another cross-encoder"):
        NliScreen(WordOverlap(), other)


@pytest.mark.paper("§7.2")
def test_a_lane_is_judged_by_its_best_sentence(frozen: Calibration, prose: Prose) -> None:
    document, lanes = prose[0]
    judged = NliScreen(WordOverlap(), frozen).judge(document, lanes)
    owners = [
        judged.stated_KF[fact.owner_lane][number] for number, fact in enumerate(document.facts)
    ]
    assert sum(owners) / len(owners) > 0.6
    empty = NliScreen(WordOverlap(), frozen).judge(document, ["", "", ""])
    assert not any(any(lane) for lane in empty.stated_KF)


def test_snli_lines_without_a_gold_label_are_left_out_and_a_subset_is_spread(
    tmp_path: Path,
) -> None:
    lines = [
        f'{{"gold_label": "{label}", "sentence1": "a {n}", "sentence2": "b"}}'
        for n, label in enumerate(["entailment", "-", "neutral", "contradiction", "entailment"])
    ]
    path = tmp_path / "snli.jsonl"
    path.write_text("\n".join(lines) + "\n")
    assert [label for _, _, label in read_pairs(path)] == [1, 2, 0, 1]
    assert [first for first, _, _ in read_pairs(path, 2)] == ["a 0", "a 3"]
    path.write_text("not json\n")
    with pytest.raises(ContractBroken, match=r"snli\.jsonl:1"):
        read_pairs(path)
