"""The exact screen, and the bounds any scorer must keep."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from pdt.chronicle.claims import read_claim
from pdt.errors import UsageError
from pdt.evaluation.generate.held_out import held_out
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.judgments import Judgment
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.lines.written import Written, WrittenLane
from pdt.evaluation.measures import ownership
from pdt.evaluation.measures.completion import outline_completion
from pdt.evaluation.measures.compute import compute_measures
from pdt.evaluation.measures.longform import LongformLimits, is_longform
from pdt.evaluation.protocol.evidence_gates import Verdict, judge_gates
from pdt.evaluation.report.tables import render_markdown
from pdt.evaluation.report.write import conclude
from pdt.evaluation.screens.exact import ExactScreen
from pdt.records.batch import RecordShards
from pdt.teacher.document import TaughtDocument
from pdt.tokenizer import load_tokenizer
from tests.support import evidence_samples
from tests.support.evaluations import chronicle_shards, held_out_pairs, small_settings

IDENTITY = (0, 1, 2)
STATEMENT = "The Oldham council took a loan of 620 crowns."


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> RecordShards:
    return chronicle_shards(tmp_path_factory.mktemp("corpus"), 12)[0]


@pytest.fixture(scope="module")
def pairs(corpus: RecordShards) -> list[tuple[HeldOutDocument, TaughtDocument]]:
    return held_out_pairs(corpus)


@pytest.mark.parametrize(
    ("text", "states", "mentions"),
    [
        ("The Oldham council took a loan of 620 crowns.", True, True),
        ("Early on, the council accepted a loan of 620 crowns with great care.", True, True),
        ("A loan of 620 crowns was taken by the Oldham council.", True, True),
        ("Here too one should keep in mind the loan of 620 crowns.", False, True),
        ("The Oldham council took a loan of 621 crowns.", False, False),
        ("The Oldham council took a loan of 6200 crowns.", False, False),
        ("The Marham council took a loan of 620 crowns.", False, True),
        ("The Oldham guild took a loan of 620 crowns.", False, True),
        ("The Oldham council refused a loan of 620 crowns.", False, True),
        ("The Oldham council took a store of 620 sacks.", False, False),
        ("", False, False),
    ],
)
def test_the_exact_screen_knows_every_wording_and_no_neighbour(
    text: str, states: bool, mentions: bool
) -> None:
    claim = read_claim("sieges", STATEMENT)
    assert bool(claim.stated().search(text)) == states
    assert bool(claim.mentioned().search(text)) == mentions


def of_one_fact() -> HeldOutDocument:
    """STATEMENT, which lane 0 owns."""
    d = evidence_samples.document()
    fact = d.facts[0].model_copy(update={"statement": STATEMENT, "hard_negative": STATEMENT})
    return d.model_copy(update={"facts": (fact,)})


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("The Oldham council took a loan of 620 crowns.", False),
        ("The council took a loan of 620 crowns.", False),
        ("The Edwood abbey took a loan of 620 crowns.", True),
        ("A loan of 620 crowns was taken by the Edwood abbey.", True),
        ("The Marham council took a loan of 620 crowns.", True),
        ("The Edwood abbey kept in mind the loan of 620 crowns.", False),
        ("The Edwood abbey took a loan of 621 crowns.", False),
        ("A loan of 620 crowns was taken by the council on short notice.", False),
    ],
)
def test_a_wrong_doer_is_an_error_and_not_only_a_missing_fact(text: str, wrong: bool) -> None:
    d = of_one_fact()
    judged = ExactScreen().judge(d, [text, "", ""])
    assert judged.wrong_doer_KF == ((int(wrong),), (0,), (0,))
    rate = ownership.wrong_doer_rate(d, judged, IDENTITY)
    assert rate == float(wrong)


def test_the_exact_screen_says_where_the_sentence_of_a_mention_begins() -> None:
    d = of_one_fact()
    texts = ["One thing.\n\nThe council took a loan of 620 crowns. More.", STATEMENT, "Nothing."]
    judged = ExactScreen().judge(d, texts)
    assert judged.place_KF == ((11,), (0,), (-1,))


def test_the_exact_screen_refuses_a_statement_it_does_not_know() -> None:
    with pytest.raises(UsageError, match="reads Chronicle only"):
        read_claim("sieges", "The flood came in March.")


@pytest.mark.paper("§7.2")
def test_the_teachers_own_sections_are_the_upper_bound(
    pairs: list[tuple[HeldOutDocument, TaughtDocument]], corpus: RecordShards
) -> None:
    limits = LongformLimits.of(corpus.config)
    for document, taught in pairs:
        texts = [section.text for section in taught.answer.sections]
        judged = ExactScreen().judge(document, texts)
        assert ownership.owner_recall(document, judged, IDENTITY) == 1
        assert ownership.leakage(document, judged, IDENTITY) == 0
        assert outline_completion(document, judged, IDENTITY) == 1
        assert ownership.reference_recall(document, judged, IDENTITY) in (None, 1)
        assert ownership.hard_negative_rate(judged) == 0
        assert ownership.altered_rate(document, judged, IDENTITY) == 0
        lengths = zip(texts, document.section_lengths, strict=True)
        assert all(is_longform(text, length - 1, limits) for text, length in lengths)


@pytest.mark.paper("§7.2")
def test_a_random_writer_scores_chance_and_a_perfect_one_more(
    pairs: list[tuple[HeldOutDocument, TaughtDocument]],
) -> None:
    """Every sentence on a lane drawn at random: a third of the facts stay with their owner."""
    recall, leaks, stream = [], [], random.Random(0)
    for document, taught in pairs * 8:
        lanes: list[list[str]] = [[], [], []]
        for section in taught.answer.sections:
            for sentence in section.text.replace("\n\n", " ").split(". "):
                stream.choice(lanes).append(sentence)
        judged = ExactScreen().judge(document, [". ".join(lane) for lane in lanes])
        recall.append(ownership.owner_recall(document, judged, IDENTITY) or 0)
        leaks.append(ownership.leakage(document, judged, IDENTITY) or 0)
    assert sum(recall) / len(recall) == pytest.approx(1 / 3, abs=0.08)
    assert sum(leaks) / len(leaks) == pytest.approx(1 / 3, abs=0.08)


def gates_of(
    pairs: list[tuple[HeldOutDocument, TaughtDocument]],
    corpus: RecordShards,
    lanes_of: Callable[[TaughtDocument], list[str]],
) -> dict[str, Verdict]:
    """The executor's verdicts on what a writer makes of every document, as an oracle run."""
    raw = Raw(documents=[document for document, _ in pairs])
    for document, taught in pairs:
        texts = lanes_of(taught)
        raw.written.append(
            Written(
                condition="oracle",
                record_id=document.record_id,
                lane_of_plan=IDENTITY,
                unmoved_lane_of_plan=IDENTITY,
                lane_at_position=IDENTITY,
                lanes=tuple(
                    WrittenLane(text=text, tokens=(0,) * length, finish="eos")
                    for text, length in zip(texts, document.section_lengths, strict=True)
                ),
            )
        )
        judged = ExactScreen().judge(document, texts)
        raw.judgments.append(
            Judgment(
                screen="exact", condition="oracle", record_id=document.record_id, judged=judged
            )
        )
    measures = compute_measures(raw, small_settings(corpus.config))
    return {judged.gate.measure: judged.verdict for judged in judge_gates(measures)}


@pytest.mark.paper("§7.1", "Table 3")
def test_a_perfect_writer_meets_the_executors_gates_and_a_random_one_none_of_recall(
    pairs: list[tuple[HeldOutDocument, TaughtDocument]], corpus: RecordShards
) -> None:
    stream = random.Random(1)

    def perfect(taught: TaughtDocument) -> list[str]:
        return [section.text for section in taught.answer.sections]

    def shuffled(taught: TaughtDocument) -> list[str]:
        return stream.sample(perfect(taught), 3)

    executor = ("owner_recall", "leakage", "completion", "longform")
    best, worst = (gates_of(pairs, corpus, writer) for writer in (perfect, shuffled))
    assert {best[f"oracle.{name}"] for name in executor} == {Verdict.MET}
    assert {worst[f"oracle.{name}"] for name in executor[:3]} == {Verdict.UNMET}
    assert best["planner.retained"] is Verdict.NOT_MEASURED


@pytest.mark.paper("§7.2")
def test_hard_negatives_and_foreign_prose_are_never_found(
    pairs: list[tuple[HeldOutDocument, TaughtDocument]],
) -> None:
    foreign = "\n\n".join(s.text for s in pairs[-1][1].answer.sections)
    for document, _ in pairs[:-1]:
        lies = " ".join(fact.hard_negative for fact in document.facts)
        judged = ExactScreen().judge(document, [lies, foreign, ""])
        assert ownership.hard_negative_rate(judged) == pytest.approx(1 / 3)
        assert ownership.owner_recall(document, judged, IDENTITY) == 0
        assert not any(judged.stated_KF[1])


def test_a_coined_choice_knows_its_cue_and_the_token_where_it_is_needed(
    pairs: list[tuple[HeldOutDocument, TaughtDocument]], corpus: RecordShards
) -> None:
    rows = [row for shard in corpus.shards for row in shard.rows()]
    seen = 0
    for (document, taught), row in zip(pairs, rows, strict=True):
        for choice in document.choices:
            seen += 1
            tokens = row["section_tokens_KT"][choice.receiver_lane].tolist()
            at, cue = choice.receiver_token, choice.cue_tokens
            word = choice.alternatives.index(choice.text)
            assert tuple(tokens[at - len(cue) : at]) == cue
            assert tokens[at] == choice.alternative_tokens[word][0]
            assert f"{choice.cue} {choice.text}" in taught.answer.sections[choice.owner_lane].text
            assert len(choice.alternatives) == 2**choice.entropy_bits
    assert seen > 3


def test_a_coined_choice_that_no_measure_can_read_is_counted(corpus: RecordShards) -> None:
    tokenizer = load_tokenizer(corpus.config.records.tokenizer)
    rows = [row for shard in corpus.shards for row in shard.rows()]
    row = next(row for row in rows if held_out(row, tokenizer).choices)
    taught = json.loads(row["document"])
    coined = next(d for d in taught["answer"]["dependencies"] if d["coined"])
    word = coined["coined"]["text"]
    count = len(held_out(row, tokenizer).choices)
    for alternatives in ([word, f"{word} Hill"], []):  # which one it is shows too late, or never
        coined["coined"] |= {"alternatives": alternatives, "entropy_bits": 1}
        after = held_out(row | {"document": json.dumps(taught)}, tokenizer)
        assert after.unread_choices == (coined["id"],)
        assert coined["id"] not in {choice.dependency_id for choice in after.choices}
        raw = Raw(documents=[after])
        results = conclude(raw, small_settings(corpus.config), config={}, inputs={})
        report = render_markdown(results, raw)
        assert f"1 of {count} coined dependencies are in no measure" in report


def test_a_document_is_named_by_what_the_model_reads(tmp_path: Path) -> None:
    from pdt.evaluation.generate.held_out import text_digest
    from tests.support.evaluations import chronicle_documents

    first, second = chronicle_documents(2)
    assert text_digest(first) != text_digest(second)
    renamed = first.model_copy(update={"record_id": "another-name"})
    assert text_digest(renamed) == text_digest(first)
