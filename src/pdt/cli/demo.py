"""`pdt demo`: the main job, with what is in the box."""

import threading

LANE_TOKENS = 96


def demo() -> None:
    """Three lanes write live from a source of the procedural corpus; the weights are untrained."""
    from rich.console import Console
    from rich.markup import escape

    from pdt.cli.generate import print_ledger, show
    from pdt.config import load_config
    from pdt.generation.settings import GenerationSettings
    from pdt.generation.writer import Writer
    from pdt.model.build import random_model
    from pdt.sources.chronicle.dials import turn_dials
    from pdt.sources.chronicle.meter import Meter
    from pdt.teacher.chronicle import Chronicle
    from pdt.terms import Split
    from pdt.tokenizer import load_tokenizer

    console = Console(highlight=False)
    tokenizer = load_tokenizer(load_config("nano").records.tokenizer)
    words = [f"trunk.shape.vocabulary={tokenizer.vocabulary}"]
    writer = Writer(random_model(load_config("nano", overrides=words)), tokenizer)
    chronicle = Chronicle(0, Split.TEST, turn_dials("nano"), Meter(tokenizer))
    document = chronicle.document(0).taught
    console.rule("the source, a fictional history")
    console.print(escape(document.article.text))
    console.rule("the request")
    console.print(escape(document.answer.request))
    console.rule("three lanes")
    console.print(
        "[bold]This model is untrained.[/] Its weights are random numbers, so its words are drawn "
        "from nothing;\nwhat you see is the machinery: one plan, three lanes a token a round, "
        "notes at every barrier."
    )
    settings = GenerationSettings(max_tokens=LANE_TOKENS, temperature=1.0)
    stop = threading.Event()
    generation = writer.begin(
        [(document.article.text, document.answer.request)], settings, should_stop=stop.is_set
    )
    done = show(generation, stop, title="nano, untrained", intervene=[], as_events=False)
    for position, section in enumerate(done.documents[0].sections):
        console.print(f"[bold]section {position + 1}[/], lane {section.lane}")
        console.print(escape(section.text.strip()), style="dim")
    console.rule("what it cost")
    print_ledger(done, console)
    console.rule()
    console.print(
        "With real weights:  make weights\n"
        "  .venv/bin/pdt model init .cache/SmolLM2-135M-Instruct.Q4_1.gguf "
        "--preset smollm2-135m --out runs/smollm2\n"
        '  .venv/bin/pdt generate README.md --request "Explain this project." '
        "--model runs/smollm2 --max-tokens 128"
    )
