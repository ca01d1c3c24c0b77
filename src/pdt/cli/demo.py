"""`pdt demo`: the main job with the package's trained model, then without some of its parts."""

import re
import threading
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from pdt.generation.events import Done
    from pdt.generation.writer import Writer
    from pdt.teacher.document import TaughtDocument

MODEL = "nano"
DOCUMENT, SEED = 0, 0
"""The first document of the test split. The seed draws what owners coin: greedy lanes would always
coin the same."""
NAME = re.compile(r"the ([A-Z][a-z]+) of the ([A-Z][a-z]+)")
"""A coined name."""
COLOURS = ("cyan", "green", "magenta")
EDITS = {
    "the plans of lanes 0 and 1 change places": (
        "swap-plans:0,1",
        "Lane 0 now tells what lane 1 told, and lane 1 what lane 0 told; lane 2 goes on as before.",
    ),
    "the notes are removed": (
        "remove-notes",
        "Every lane still knows its plan, but nobody hears what the others have named.",
    ),
}


def demo() -> None:
    """Three lanes write a history live; then with plans swapped, then without notes."""
    from rich.console import Console
    from rich.markup import escape

    from pdt.cli.generate import print_ledger
    from pdt.cli.options import opening
    from pdt.generation.writer import Writer

    console = Console(highlight=False)
    with opening(MODEL):
        writer = Writer.load(MODEL)
    document = _held_out(writer)
    console.rule("the source, a fictional history that the model has never seen")
    console.print(escape(document.article.text))
    console.rule("the request")
    console.print(escape(document.answer.request))
    console.rule("the planner's outlines, in the words of the teacher's that match them")
    for lane, nodes in enumerate(_outlines(writer, document)):
        shown = "  ".join(f"{escape(text)} [dim]{cosine:.2f}[/]" for text, cosine in nodes)
        console.print(f"[bold {COLOURS[lane]}]lane {lane}[/]  {shown}")
    console.print(
        "A plan is vectors, not words: the numbers are cosines of its nodes with the teacher's.",
        style="italic",
    )
    console.rule("three lanes write at once")
    first = _write(writer, document, console, [])
    console.print(
        "Each lane is to tell what its own outline says, as the source has it. Names that stand in "
        "no source are coined by one lane; siblings can know them from its notes alone.",
        style="italic",
    )
    for title, (edit, meaning) in EDITS.items():
        console.rule(title)
        console.print(meaning, style="italic")
        _write(writer, document, console, [edit])
    console.rule("what the first document cost")
    print_ledger(first, console)
    console.rule()
    console.print(
        "Your own text, with real pretrained weights that are not trained for lanes yet:\n"
        "  make weights\n"
        "  .venv/bin/pdt model init .cache/SmolLM2-135M-Instruct.Q4_1.gguf "
        "--preset smollm2-135m --out runs/smollm2\n"
        "  .venv/bin/pdt generate tests/data/texts/obituary.md "
        '--request "Who was she? Answer in three sentences." --model runs/smollm2 --max-tokens 128',
        soft_wrap=True,  # lines to copy
    )


def _held_out(writer: "Writer") -> "TaughtDocument":
    """A document of the test split, made as the model's study made its own."""
    from pdt.chronicle import Chronicle
    from pdt.chronicle.dials import turn_dials
    from pdt.chronicle.meter import Meter
    from pdt.study.recipe import load_recipe
    from pdt.terms import Split

    test = load_recipe(MODEL).corpora["test"]
    dials = turn_dials("nano", test.dials)
    meter = Meter(writer.tokenizer)
    return Chronicle(test.seed, Split.TEST, dials, meter).document(DOCUMENT).taught


def _outlines(writer: "Writer", document: "TaughtDocument") -> list[list[tuple[str, float]]]:
    """For each lane the outline of the teacher that its plan matches (Eq. 7), node by node."""
    from torch.nn.functional import cosine_similarity

    from pdt.evaluation.generate.plans import learned_plans, read_batch
    from pdt.model.oracle import plan_targets
    from pdt.records.batch import collate
    from pdt.records.compile import Compiler
    from pdt.records.schema import TrainingRecord

    record = Compiler.load(writer.model.config).compile(document)
    assert isinstance(record, TrainingRecord)
    batch = collate([dict(record)])
    prompt = read_batch(writer.model, batch)
    learned = learned_plans(writer.model, batch, prompt)
    nodes_BKNP = learned.in_teacher_order().nodes_BKNP
    targets_BKNP = plan_targets(writer.model, prompt, batch)
    cosines_KN = cosine_similarity(nodes_BKNP, targets_BKNP, dim=-1)[0].tolist()
    plans = document.answer.plans
    return [
        [(node.objective, cosines_KN[k][place]) for place, node in enumerate(plans[k].nodes)]
        for k in learned.lane_of_plan_BK[0].argsort().tolist()
    ]


def _write(
    writer: "Writer",
    document: "TaughtDocument",
    console: "Console",
    edits: list[str],
) -> "Done":
    from pdt.cli.generate import show
    from pdt.generation.interventions import parse_intervention
    from pdt.generation.settings import GenerationSettings

    limit = writer.model.config.records.limits.section_tokens.max
    settings = GenerationSettings(max_tokens=limit, temperature=0.3, seed=SEED)
    stop = threading.Event()
    generation = writer.begin(
        [(document.article.text, document.answer.request)],
        settings,
        interventions=[parse_intervention(edit) for edit in edits],
        should_stop=stop.is_set,
    )
    done = show(generation, stop, title=MODEL, intervene=edits, as_events=False)
    if stop.is_set():
        raise typer.Exit(130)
    for position, section in enumerate(done.documents[0].sections):
        colour = COLOURS[section.lane % len(COLOURS)]
        console.print(f"[bold {colour}]section {position + 1}, lane {section.lane}[/]")
        console.print(_marked(section.text.strip()))
    for line in _coined(done):
        console.print(line, style="bold")
    return done


def _coined(done: "Done") -> list[str]:
    """What lanes call a thing that more than one of them names."""
    words: dict[str, dict[int, str]] = {}
    for section in done.documents[0].sections:
        for thing, word in NAME.findall(section.text):
            words.setdefault(thing, {}).setdefault(section.lane, word)
    return [
        f"the {thing} of the …  "
        + ", ".join(f"lane {lane}: {word}" for lane, word in sorted(said.items()))
        + ("  (they agree)" if len(set(said.values())) == 1 else "  (they differ)")
        for thing, said in words.items()
        if len(said) > 1
    ]


def _marked(text: str) -> str:
    """Coined names stand out: they are what one lane can only know from another."""
    from rich.markup import escape

    return NAME.sub(r"[bold reverse]\g<0>[/]", escape(text))
