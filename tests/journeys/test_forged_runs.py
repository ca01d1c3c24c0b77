"""`pdt verify` against a forger who retells the run: every number follows from the edited lines."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pdt.cli.evaluation import verify
from pdt.errors import PdtError
from pdt.evaluation.lines.raw import Raw, read_raw
from pdt.evaluation.protocol.conditions import Weights
from pdt.evaluation.protocol.scope import judged_by, scope_of
from pdt.evaluation.protocol.settings import EvaluationSettings
from pdt.evaluation.report.results import read_results
from pdt.evaluation.report.write import conclude, write_report
from pdt.evaluation.screens.calibration import Calibration, CalibrationDocument
from pdt.evaluation.verify.verify import verify_results
from pdt.provenance import MANIFEST
from pdt.study.steps import verdict_of
from pdt.study.summary import summarize
from tests.support.evaluations import Ran


@dataclass
class Story:
    """What a forger may change before everything that follows from it is computed again."""

    raw: Raw
    settings: dict[str, Any]
    models: dict[str, str]
    config: dict[str, Any]


Forgery = Callable[[Story], None]


def retell(directory: Path, *edits: Forgery, records: str = "9" * 64) -> Path:
    """The directory of a run that had measured the edited lines."""
    results = read_results(directory)
    config = json.loads((directory / MANIFEST).read_text())["config"]
    story = Story(read_raw(directory), config["settings"], dict(results.models), config)
    for edit in edits:
        edit(story)
    settings = EvaluationSettings.model_validate_json(json.dumps(story.settings))
    out = directory.with_name("retold")
    inputs = {"records": records, **story.models}
    results = conclude(story.raw, settings, config=story.config, inputs=inputs)
    write_report(out, story.raw, results, config=story.config, inputs=inputs)
    return out


def change(rows: list[Any], condition: str | None = None, **fields: Any) -> None:
    """Other fields in the first line, or in the first of a condition."""
    places = (n for n, row in enumerate(rows) if condition in (None, row.condition))
    place = next(places)
    rows[place] = rows[place].model_copy(update=fields)


def without(story: Story, *kinds: str) -> None:
    """The lines of a document that coins something are gone from some files."""
    name = next(d.record_id for d in story.raw.documents if d.choices)
    for kind in kinds:
        rows = getattr(story.raw, kind)
        setattr(story.raw, kind, [row for row in rows if row.record_id != name])


EVERYWHERE = ("documents", "written", "coined", "judgments", "likelihoods")


def document_again(story: Story) -> None:
    story.raw.documents.append(story.raw.documents[0])


def document_for_another(story: Story) -> None:
    without(story, *EVERYWHERE)
    story.raw.documents.append(story.raw.documents[0])


def more_bits(story: Story) -> None:
    document = next(d for d in story.raw.documents if d.choices)
    choices = tuple(c.model_copy(update={"entropy_bits": 9.0}) for c in document.choices)
    place = story.raw.documents.index(document)
    story.raw.documents[place] = document.model_copy(update={"choices": choices})


def calibrated(story: Story, *seen: CalibrationDocument) -> None:
    """The run had an NLI screen."""
    frozen = Calibration(
        encoder="word-overlap",
        threshold=0.5,
        finds=1,
        refuses_hard_negatives=1,
        refuses_absent=1,
        documents=seen,
    )
    story.config["calibration"] = frozen.model_dump(mode="json")


def judged_by_nli(story: Story) -> None:
    """Judgments of the NLI screen beside those of the exact one."""
    settings = EvaluationSettings.model_validate_json(json.dumps(story.settings))
    wanted = {(row.condition, row.record_id) for row in judged_by("nli", settings, story.raw)}
    story.raw.judgments += [
        row.model_copy(
            update={"screen": "nli", "judged": row.judged.model_copy(update={"altered_KF": None})}
        )
        for row in story.raw.judgments
        if (row.condition, row.record_id) in wanted
    ]


def nli_is_chosen(story: Story) -> None:
    story.settings["screen"] = "nli"
    judged_by_nli(story)
    story.raw.judgments = [row for row in story.raw.judgments if row.screen == "nli"]


def nli_hides_an_exact_judgment(story: Story) -> None:
    calibrated(story)
    judged_by_nli(story)
    assert story.raw.judgments[0].condition == "oracle"
    del story.raw.judgments[0]


def cells_above_one(story: Story) -> None:
    calibrated(story)
    nli_is_chosen(story)
    judged = story.raw.judgments[0].judged
    stated = tuple(tuple(9 for _ in lane) for lane in judged.stated_KF)
    change(story.raw.judgments, judged=judged.model_copy(update={"stated_KF": stated}))


def calibrated_on_what_it_judges(story: Story) -> None:
    document = story.raw.documents[0]
    seen = CalibrationDocument(
        record_id=document.record_id,
        family_key=document.family_key,
        text_sha256=document.text_sha256,
    )
    calibrated(story, seen)
    judged_by_nli(story)


def plans_at(story: Story, condition: str, *lanes: int) -> None:
    change(story.raw.written, condition, lane_of_plan=lanes, unmoved_lane_of_plan=lanes)


def plan_of_one_line_moved(story: Story) -> None:
    first = next(row for row in story.raw.written if row.condition == "learned")
    lanes = (*first.lane_of_plan[1:], first.lane_of_plan[0])
    plans_at(story, "learned", *lanes)


def swap_undone(story: Story) -> None:
    first = next(row for row in story.raw.written if row.condition == "swap")
    change(story.raw.written, "swap", lane_of_plan=first.unmoved_lane_of_plan)


def change_lane(story: Story, **fields: Any) -> None:
    first, *others = story.raw.coined[0].lanes
    change(story.raw.coined, lanes=(first.model_copy(update=fields), *others))


def other_tokens(story: Story) -> None:
    tokens = story.raw.coined[0].lanes[0].tokens
    change_lane(story, tokens=(*tokens[1:], tokens[0]))


def other_end(story: Story) -> None:
    ended = story.raw.coined[0].lanes[0].finish == "eos"
    change_lane(story, finish="length" if ended else "eos")


def other_draw(story: Story) -> None:
    forced = story.raw.coined[0].forced
    assert forced is not None
    change(story.raw.coined, forced=dict.fromkeys(forced, "Another"))


def shorter_section(story: Story) -> None:
    first, *others = story.raw.likelihoods[0].nll
    change(story.raw.likelihoods, nll=(first[:-1], *others))


def more_choices(story: Story) -> None:
    choices = story.raw.likelihoods[0].choices | {"another": (-1.0, -2.0)}
    change(story.raw.likelihoods, choices=choices)


def no_execution(story: Story) -> None:
    story.raw.execution = None


def fewer_timed(story: Story, left_out: int) -> None:
    assert story.raw.execution is not None
    runs = story.raw.execution.runs[left_out:]
    story.raw.execution = story.raw.execution.model_copy(update={"runs": runs})


def altered_facts(story: Story) -> None:
    altered = story.raw.altered[0].document
    fewer = altered.model_copy(update={"facts": altered.facts[:-1]})
    story.raw.altered[0] = story.raw.altered[0].model_copy(update={"document": fewer})


def other_openings(story: Story) -> None:
    document = story.raw.documents[0]
    turned = (*document.openings[1:], document.openings[0])
    story.raw.documents[0] = document.model_copy(update={"openings": turned})


def no_control(story: Story) -> None:
    del story.models["self_only"]


def no_bus(story: Story) -> None:
    del story.models["bus"]


def with_settings(story: Story, **fields: Any) -> None:
    story.settings |= fields


FORGERIES: dict[str, tuple[Forgery, str]] = {
    "a text gone": (
        lambda s: without(s, "written", "judgments"),
        r"generations\.jsonl: has no line of oracle",
    ),
    "a likelihood gone": (
        lambda s: without(s, "likelihoods"),
        r"likelihoods\.jsonl: has no line of bus",
    ),
    "a coined line gone": (
        lambda s: without(s, "coined"),
        r"coined\.jsonl: has no line of bus",
    ),
    "a document gone": (lambda s: without(s, *EVERYWHERE), "holds 3 documents; the settings say 4"),
    "a document again": (document_again, r"documents\.jsonl: line 5 repeats"),
    "a document for another": (document_for_another, r"documents\.jsonl: line 4 repeats"),
    "more bits": (more_bits, "does not give .* 2.h alternatives"),
    "an exact judgment hidden": (nli_hides_an_exact_judgment, "has no line of exact oracle"),
    "nli unasked": (judged_by_nli, "is of no such run: nli"),
    "a screen of nobody": (
        lambda s: with_settings(s, screen="guess"),
        "there is no screen 'guess'",
    ),
    "nli without its file": (nli_is_chosen, "the screen nli judged without a calibration"),
    "cells above one": (cells_above_one, "is not a table of lanes and facts"),
    "calibrated on it": (calibrated_on_what_it_judges, "were calibrated on"),
    "a lane twice": (lambda s: plans_at(s, "learned", 0, 0, 1), "does not name every lane once"),
    "a swap undone": (swap_undone, "has plans where swap does not put them"),
    "an oracle moved": (
        lambda s: plans_at(s, "oracle", 1, 0, 2),
        "has the teacher's plans on other lanes",
    ),
    "one plan moved": (plan_of_one_line_moved, "on other lanes than another line"),
    "another text": (lambda s: change_lane(s, text="Lion."), "its tokens do not say"),
    "other tokens": (other_tokens, "its tokens do not say"),
    "another end": (other_end, "which its tokens do not"),
    "other block ends": (
        lambda s: change_lane(s, block_ends=(1,)),
        "does not end the blocks of lane 0 where its tokens do",
    ),
    "altered facts": (altered_facts, "does not have the facts of its document"),
    "other openings": (other_openings, "does not begin lane . with its sibling's first sentence"),
    "nothing forced": (lambda s: change(s.raw.coined, forced=None), "does not force the words"),
    "another draw": (other_draw, "does not force the words that the seed 0 draws"),
    "another seed": (lambda s: with_settings(s, seed=5), "that the seed 5 draws"),
    "a shorter section": (shorter_section, "does not score every token"),
    "more choices": (more_choices, "does not score the document's choices"),
    "no execution": (no_execution, r"does not name execution\.json"),
    "a document not timed": (
        lambda s: fewer_timed(s, 3),
        r"execution\.json: has no line of packed",
    ),
    "a side not timed": (lambda s: fewer_timed(s, 1), r"execution\.json: has no line of packed"),
    "no control": (no_control, "is of no such run: self_only"),
    "no bus": (no_bus, "are not bus, or bus and self_only"),
    "fewer conditions": (
        lambda s: with_settings(s, conditions=["oracle", "learned"]),
        "is of no such run: no_dynamic",
    ),
    "a condition that cannot run": (
        lambda s: with_settings(s, conditions=["learned"], plan="oracle"),
        "names conditions that its checkpoints cannot run",
    ),
    "longer lanes": (
        lambda s: with_settings(s, longform={"tokens": 1, "paragraphs": 1}),
        "longform is not tokens=64 paragraphs=2",
    ),
    "longer blocks": (lambda s: with_settings(s, block_tokens=8), "block_tokens is not 32"),
    "a longer window": (lambda s: with_settings(s, window_blocks=99), "window_blocks is not 16"),
    "more tokens": (lambda s: with_settings(s, max_tokens=99), "max_tokens is not 70"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_run_is_found_even_when_every_number_follows(copy: Path, name: str) -> None:
    edit, found = FORGERIES[name]
    with pytest.raises(PdtError, match=found):
        verify_results(retell(copy, edit))


def only(story: Story, conditions: list[str], *, control: bool) -> None:
    """As if `--condition` had named these, with or without a self-only checkpoint."""
    with_settings(story, conditions=conditions)
    if not control:
        no_control(story)
    settings = EvaluationSettings.model_validate_json(json.dumps(story.settings))
    scope = scope_of(settings, story.models)
    for kind, kept in (
        ("written", scope.written),
        ("judgments", scope.written),
        ("altered", scope.written),
        ("likelihoods", scope.scored),
        ("coined", scope.coined),
    ):
        names = {condition.name for condition in kept}
        rows = getattr(story.raw, kind)
        setattr(story.raw, kind, [row for row in rows if row.condition in names])


@pytest.mark.parametrize("control", [True, False])
@pytest.mark.parametrize("conditions", [[], ["oracle", "swap"], ["learned", "no_dynamic"]])
def test_an_honest_run_of_some_conditions_verifies(
    copy: Path, conditions: list[str], control: bool
) -> None:
    verified = verify_results(retell(copy, lambda s: only(s, conditions, control=control)))
    assert (Weights.SELF_ONLY in verified.results.models) == control
    assert verified.taken == ()


def test_judgments_of_an_nli_model_are_taken_and_that_is_said(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = retell(copy, calibrated, nli_is_chosen)
    judgments = len(read_raw(out).judgments)
    assert verify_results(out).judged_again == 0
    verify(out)
    assert f"{judgments} judgments of the screen nli were taken as they are" in (
        capsys.readouterr().out
    )


def test_an_nli_screen_beside_the_exact_one_is_said_too(copy: Path, ran: Ran) -> None:
    few = partial(with_settings, nli_documents=2)
    verified = verify_results(retell(copy, few, calibrated, judged_by_nli))
    assert verified.judged_again == len(ran[0].judgments)
    assert verified.taken[0].startswith("4 judgments of the screen nli were taken")


def test_texts_whose_tokenizer_is_elsewhere_are_taken_and_that_is_said(copy: Path) -> None:
    def other_tokenizer(story: Story) -> None:
        story.config["records"]["records"]["tokenizer"]["name"] = "elsewhere"

    (line,) = verify_results(retell(copy, other_tokenizer, other_tokens)).taken
    assert "'elsewhere' of their tokens is not in the package" in line


def test_results_that_name_no_corpus_are_of_a_corpus_with_the_models_limits(copy: Path) -> None:
    def unnamed(story: Story) -> None:
        story.config["model"]["records"] = story.config.pop("records")["records"]

    assert verify_results(retell(copy, unnamed)).taken == ()


def test_seeds_of_a_study_are_put_together_only_on_the_same_documents(
    copy: Path, tmp_path: Path
) -> None:
    study = tmp_path / "study"
    shutil.copytree(copy, verdict_of(study, 0))
    shutil.copytree(copy, verdict_of(study, 1))
    assert len(summarize(study, 2).models) == 2
    shutil.copytree(retell(copy, records="8" * 64), verdict_of(study, 2))
    with pytest.raises(PdtError, match=r"seed-2/verdict was judged on other documents"):
        summarize(study, 3)
