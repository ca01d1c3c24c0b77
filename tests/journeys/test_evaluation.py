"""A whole evaluation on tiny untrained models: every condition, every file, every table."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pdt.chronicle.claims import read_claim
from pdt.config import edit_config
from pdt.errors import BindingMismatch, UsageError
from pdt.evaluation.generate.batches import batch_of
from pdt.evaluation.generate.checkpoints import check_budgets
from pdt.evaluation.generate.latency import measure_memory
from pdt.evaluation.generate.parts import Parts, kept_parts
from pdt.evaluation.generate.runs import Runs
from pdt.evaluation.lines.execution import PACKED, SIDES
from pdt.evaluation.lines.raw import Raw, read_raw, write_raw
from pdt.evaluation.measures.longform import LongformLimits
from pdt.evaluation.protocol.conditions import COINED, GENERATED, SCORED, Weights
from pdt.evaluation.report.html import render_html
from pdt.evaluation.report.results import read_results
from pdt.evaluation.screens.exact import ExactScreen
from pdt.evaluation.screens.judge import check_screens
from pdt.evaluation.verify.verify import verify_results
from pdt.generation.settings import GenerationSettings
from pdt.lock import hold_run
from pdt.model.build import random_model
from pdt.model.store import save_model
from pdt.provenance import write_manifest
from pdt.records.batch import RecordShards
from tests.support.commands import run_here as pdt
from tests.support.evaluations import (
    Ran,
    judged_exactly,
    small_config,
    small_models,
    small_settings,
    write_small,
)

pytestmark = pytest.mark.slow


def test_a_killed_evaluation_goes_on_to_the_same_numbers(
    corpus: RecordShards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = small_settings(corpus.config, batch=2, conditions=("oracle", "learned"))
    out, what, made = tmp_path / "out", {"records": "these"}, list[str]()
    plain = Parts.write

    def run(killed_at: str, of: dict[str, str] = what) -> Raw:
        def write(parts: Parts, name: str, raw: Raw) -> None:
            made.append(name)
            if name == killed_at:
                raise KeyboardInterrupt
            plain(parts, name, raw)

        monkeypatch.setattr(Parts, "write", write)
        torch.manual_seed(0)
        runs = Runs(corpus, small_models(), settings)
        with kept_parts(out, of) as runs.parts:
            return judged_exactly(runs)

    whole = run("")
    parts, begun = list(made), tmp_path / ".out.begun"
    assert parts == [
        "all-0000", "all-0001", "told-0000", "told-0001", "coined-all-0000",
    ]  # fmt: skip
    assert not begun.exists()
    with pytest.raises(KeyboardInterrupt):
        run("coined-all-0000")
    with pytest.raises(BindingMismatch, match="the beginning of another evaluation"):
        run("", {"records": "others"})
    with hold_run(begun), pytest.raises(UsageError, match="Another process is evaluating"):
        run("")
    (begun / "all-0001" / "generations.jsonl").write_text("{}")  # damaged: measured again
    made.clear()
    later = run("")
    assert made == [parts[1], parts[-1]] and not begun.exists()
    for kind in ("documents", "written", "likelihoods", "coined", "judgments"):
        assert getattr(later, kind) == getattr(whole, kind)


@pytest.mark.paper("§7.1", "Table 3")
def test_every_condition_writes_scores_and_coins(ran: Ran) -> None:
    raw, results, _ = ran
    coined = sum(bool(document.choices) for document in raw.documents)
    assert coined >= 2
    assert {row.condition for row in raw.written} == {c.name for c in GENERATED}
    assert len(raw.written) == 4 * len(GENERATED)
    assert len(raw.altered) == 4 * sum(c.alters is not None for c in GENERATED)
    assert {row.condition for row in raw.likelihoods} == {c.name for c in SCORED}
    assert {row.condition for row in raw.coined} == {c.name for c in COINED}
    assert len(raw.coined) == coined * len(COINED)
    assert len(raw.judgments) == len(raw.written)
    assert [judged.measure is not None for judged in results.gates[:9]] == [True] * 9


@pytest.mark.paper("Table 3")
def test_every_way_of_writing_times_its_parts_in_every_repeat(ran: Ran) -> None:
    execution = ran[0].execution
    assert execution is not None
    for side in SIDES:
        runs = execution.of_side(side)
        assert len(runs) == 4 * ran[1].settings.repeats > 4
        for run in runs:
            parts = (run.plan_seconds, run.prefill_seconds, run.decode_seconds)
            assert all(part is not None and part > 0 for part in parts)
            assert sum(part for part in parts if part is not None) <= run.seconds
            assert run.private_cache_bytes and run.shared_cache_bytes
    for run in execution.of_side(PACKED):
        assert run.prefill_seconds is not None
        if run.repeat == 0:  # the time of a round is not the prefill's
            assert len(run.round_seconds) == run.rounds
            assert sum(run.round_seconds) <= run.seconds - run.prefill_seconds


@pytest.mark.paper("Table 3")
def test_the_memory_of_each_way_is_of_a_process_of_its_own(tmp_path: Path) -> None:
    save_model(small_models()[Weights.BUS], tmp_path / "bus", with_trunk=True)
    found = measure_memory(tmp_path / "bus", [5, 6, 7], GenerationSettings(max_tokens=4))
    assert [row.side for row in found] == list(SIDES)
    assert all(0 < row.loaded_bytes <= row.peak_bytes for row in found)


@pytest.mark.paper("§7.3", "Eq. 10")
def test_a_closed_gate_costs_what_removed_notes_cost_and_others_differ(ran: Ran) -> None:
    raw, _, _ = ran
    nll = {(row.condition, row.record_id): row.nll for row in raw.likelihoods}
    name = raw.documents[0].record_id
    assert nll["no_dynamic", name] == nll["closed_gate", name]
    for other in ("no_dynamic", "mutated", "exchanged", "scrambled", "self_only"):
        assert nll["bus", name] != nll[other, name], other


@pytest.mark.paper("§7.3")
def test_the_intact_bus_scores_what_training_scores(ran: Ran, corpus: RecordShards) -> None:
    """The same rollout as the trainer's, with learned plans in the teacher's order."""
    from pdt.terms import Loss, PlanCondition
    from pdt.training.losses import compute_losses

    raw, _, _ = ran
    model = small_models()[Weights.BUS]
    # Evaluation never weighs tokens; training of nano does.
    model.config = edit_config(model.config, ["objective.dependency_token=1"], where="test")
    rows = [row for row in raw.likelihoods if row.condition == "bus"]
    batch = next(corpus.batches(4))
    with torch.inference_mode():
        loss = compute_losses(model, batch, PlanCondition.LEARNED, {Loss.TOKEN}).parts[Loss.TOKEN]
    means = [sum(map(sum, row.nll)) / sum(map(len, row.nll)) for row in rows]
    assert sum(means) / len(means) == pytest.approx(loss.item(), rel=1e-4)


@pytest.mark.paper("§7.1")
def test_a_swap_moves_the_plans_and_their_addresses(ran: Ran) -> None:
    raw, _, _ = ran
    for row in raw.written:
        moved = row.lane_of_plan != row.unmoved_lane_of_plan
        assert moved == (row.condition == "swap")
        if row.condition == "oracle":
            assert row.lane_of_plan == (0, 1, 2)


def test_an_owner_that_writes_the_cue_coins_the_drawn_word(corpus: RecordShards) -> None:
    """The owner is made to write the cue; what follows is the draw, and only in that lane."""
    from pdt.evaluation.generate.write import draw_words
    from pdt.generation.loop import start

    runs = Runs(corpus, small_models(), small_settings(corpus.config))
    batch = batch_of([pair for pair in runs.pairs if pair[0].choices])
    document, choice = batch.documents[0], batch.documents[0].choices[0]
    word = draw_words([document], 0)[0][choice.choice_id]
    tokens = choice.alternative_tokens[choice.alternatives.index(word)]
    cue = list(choice.cue_tokens)
    rules: list[dict[tuple[int, ...], tuple[int, ...]]] = [{choice.cue_tokens: tokens}, {}, {}]
    generation = start(
        runs.models[Weights.BUS],
        [[5, 6, 7]],
        GenerationSettings(max_tokens=12, stop_at_eos=False),
        tokenizer=runs.tokenizer,
        forced=[[cue, cue, cue]],
        continuations=[rules],
    )
    list(generation.events())
    written = [writer.tokens for writer in generation.writers[0]]
    assert tuple(written[0][len(cue) : len(cue) + len(tokens)]) == tokens
    free = [row[len(cue) : len(cue) + len(tokens)] for row in written[1:]]
    assert any(tuple(row) != tokens for row in free)


def test_a_checkpoint_without_a_planner_is_judged_on_the_teachers_plans(
    corpus: RecordShards, tmp_path: Path
) -> None:
    settings = small_settings(
        corpus.config,
        plan="oracle",
        documents=2,
        batch=2,
        max_tokens=6,
        longform=LongformLimits(tokens=6, paragraphs=2),
        conditions=("oracle", "swap"),
    )
    models = {Weights.BUS: small_models()[Weights.BUS]}
    runs = Runs(corpus, models, settings)
    raw = judged_exactly(runs)
    results = write_small(tmp_path / "out", runs, raw)
    assert verify_results(tmp_path / "out").results == results
    assert {row.condition for row in raw.written} == {"oracle", "swap"}
    assert "oracle_swap.retained" in results.measures
    assert "planner.retained" not in results.measures
    assert not any(name.startswith("bits.self_only") for name in results.measures)
    assert all(row.unmoved_lane_of_plan == (0, 1, 2) for row in raw.written)


def test_draws_are_uniform_and_depend_on_the_seed(ran: Ran) -> None:
    from collections import Counter

    from pdt.evaluation.generate.write import draw_words

    document = next(d for d in ran[0].documents if d.choices)
    choice = document.choices[0]
    drawn = Counter(draw_words([document], seed)[0][choice.choice_id] for seed in range(400))
    assert set(drawn) == set(choice.alternatives)
    assert max(drawn.values()) < 400 / len(choice.alternatives) * 1.35


def test_a_lane_may_write_what_unicode_calls_a_line_end(ran: Ran, tmp_path: Path) -> None:
    first = ran[0].written[0]
    lanes = [lane.model_copy(update={"text": "a\u2028b\x85c\u2029d"}) for lane in first.lanes]
    raw = replace(ran[0], written=[first.model_copy(update={"lanes": tuple(lanes)})])
    write_raw(tmp_path, raw)
    assert read_raw(tmp_path).written == raw.written


def test_the_stored_lines_are_the_raw_lines(ran: Ran) -> None:
    raw, results, out = ran
    assert read_raw(out) == raw
    assert read_results(out) == results


def test_the_page_is_whole_alone_and_escapes_what_was_written(ran: Ran) -> None:
    raw, results, _ = ran
    lanes = list(raw.written[0].lanes)
    lanes[0] = lanes[0].model_copy(update={"text": "<script>alert(1)</script>"})
    first = raw.written[0].model_copy(update={"lanes": tuple(lanes)})
    page = render_html(results, replace(raw, written=[first, *raw.written[1:]]))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "http:" not in page and "https:" not in page and "src=" not in page
    for title in ("Owner recall by condition", "Δ by token kind", "Seconds for a complete answer"):
        assert title in page


@pytest.mark.paper("Table 3")
@pytest.mark.parametrize(
    "other", ["notes.codes=128", "training.optimizer.accumulation=2", "objective.note=0"]
)
def test_a_self_only_control_must_match_the_bus_checkpoint(
    corpus: RecordShards, other: str
) -> None:
    models = small_models()
    models[Weights.SELF_ONLY] = random_model(small_config("notes.condition=self_only", other))
    with pytest.raises(BindingMismatch, match=other.partition("=")[0]):
        Runs(corpus, models, small_settings(corpus.config))


@pytest.mark.paper("Table 3")
def test_models_are_compared_after_as_many_steps_on_the_same_records(tmp_path: Path) -> None:
    def saved(name: str, step: int, records: str, *, packed: bool) -> Path:
        trained, path = {"step": step, "records": records * 64}, tmp_path / name / "at"
        path.mkdir(parents=True)
        if packed:
            write_manifest(path, made_by="", config=None, inputs={"trained": trained})
            return path
        (path / "state.json").write_text(json.dumps({"progress": {"step": step}}))
        digest = {"records": {"digest": trained["records"]}}
        write_manifest(path.parent, made_by="", config=None, inputs=digest)
        return path

    bus = saved("bus", 9, "a", packed=False)
    for packed in (False, True):
        check_budgets(bus, saved(f"same {packed}", 9, "a", packed=packed))
        for step, records in ((8, "a"), (9, "b")):
            other = saved(f"{step} {records} {packed}", step, records, packed=packed)
            with pytest.raises(BindingMismatch, match="another training budget"):
                check_budgets(bus, other)


def test_what_a_screen_cannot_read_is_refused_before_anything_is_written(
    corpus: RecordShards, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Runs(corpus, small_models(), small_settings(corpus.config))
    monkeypatch.setattr("pdt.chronicle.claims.CATEGORIES", ())
    read_claim.cache_clear()
    with pytest.raises(UsageError, match="--screen nli"):
        check_screens([ExactScreen()], runs.documents, lanes=3)


def test_a_condition_that_cannot_run_is_refused_by_name(corpus: RecordShards) -> None:
    settings = small_settings(corpus.config, plan="oracle", conditions=("learned",))
    with pytest.raises(UsageError, match="leave out --plan oracle"):
        Runs(corpus, small_models(), settings)


def test_the_commands_show_gates_and_find_tampering(copy: Path) -> None:
    shown = pdt("eval", "report", str(copy))
    assert shown.returncode == 1  # a gate is unmet
    assert "owner recall" in shown.stdout
    whole = pdt("verify", str(copy), "--json")
    assert whole.returncode == 0
    assert json.loads(whole.stdout)["gates"] == 42
    (copy / "report.md").write_text("all gates are met\n")
    changed = pdt("verify", str(copy))
    assert changed.returncode == 3
    assert "report.md" in changed.stderr
    assert "Traceback" not in changed.stderr


def test_a_wrong_call_is_refused_and_leaves_nothing(corpus: RecordShards, tmp_path: Path) -> None:
    save_model(small_models()[Weights.SELF_ONLY], tmp_path / "control", with_trunk=True)
    out = tmp_path / "out"
    control = str(tmp_path / "control")
    swapped = pdt("eval", "run", str(corpus.directory), "--model", control, "--out", str(out))
    assert swapped.returncode == 3
    assert "another notes condition" in swapped.stderr
    assert "Traceback" not in swapped.stderr
    many = pdt(
        "eval", "run", str(corpus.directory), "--model", "nano", "--out", str(out),
        "--documents", "5",
    )  # fmt: skip
    assert many.returncode == 2
    assert "holds 4 documents of the split test; 5 are asked for" in many.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["control"]
