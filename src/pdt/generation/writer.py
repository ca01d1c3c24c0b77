"""A model that takes text and gives text: the public way to generate.

writer = pdt.Writer.load("runs/model")
for event in writer.stream(source, "Write a history of the siege."):
    ...
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pdt.errors import UsageError, require_type
from pdt.generation.events import Done, Event
from pdt.generation.interventions import Intervention, as_interventions
from pdt.generation.loop import Generation, start
from pdt.generation.settings import GenerationSettings, as_settings
from pdt.model.kernels.prepare import prepare
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.model.store import load_model
from pdt.tokenizer import StudentTokenizer

Document = tuple[str, str]
"""A source and the request about it."""
Interventions = str | Intervention | Sequence[str | Intervention]
"""Values, or their texts as `--intervene` takes them."""


class Writer:
    """A Parallel Decoder Transformer with its tokenizer."""

    def __init__(self, model: ParallelDecoder, tokenizer: StudentTokenizer | None = None) -> None:
        require_type(model, ParallelDecoder, "The model", "what load_model or from_trunk gives")
        found = tokenizer or model.tokenizer
        if found is None:
            raise UsageError(
                "The model has no tokenizer.\n"
                "Build it from a trunk that has one, or give one: Writer(model, tokenizer)."
            )
        self.model = model.eval()
        self.tokenizer = found

    @classmethod
    def load(cls, directory: str | Path, *, trunk: str | None = None) -> "Writer":
        """Open a saved model: a directory, a checkpoint of a run, or `nano` of the package.

        `trunk` says where the frozen weights lie now, if they have moved. A model whose files were
        changed, or that stands on other weights, is refused.
        """
        model = load_model(directory, trunk=trunk)
        prepare(model.device)
        return cls(model)

    def begin(
        self,
        documents: Sequence[Document],
        settings: GenerationSettings | None = None,
        *,
        interventions: Interventions = (),
        plans: PlanSet | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        **values: Any,
    ) -> Generation:
        """A generation over several documents at once, ready to run with `.events()`.

        A document is a source and a request. Interventions are values, such as
        `pdt.SwapPlans(0, 1)`, or texts, `"swap-plans:0,1"`. Single settings can be given by name,
        as in `max_tokens=64`.
        """
        chosen = as_settings(settings, values)
        edits = as_interventions(interventions)
        return start(
            self.model,
            [self.prompt(*_pair(document)) for document in documents],
            chosen,
            tokenizer=self.tokenizer,
            interventions=edits,
            plans=plans,
            should_stop=should_stop,
        )

    def stream(
        self,
        source: str,
        request: str,
        settings: GenerationSettings | None = None,
        *,
        interventions: Interventions = (),
        **values: Any,
    ) -> Iterator[Event]:
        """The events of one document, as they happen; arguments as in `begin`."""
        document = (source, request)
        return self.begin([document], settings, interventions=interventions, **values).events()

    def generate(
        self,
        source: str,
        request: str,
        settings: GenerationSettings | None = None,
        *,
        interventions: Interventions = (),
        **values: Any,
    ) -> Done:
        """The sections in presentation order, and the ledger; arguments as in `begin`."""
        *_, done = self.stream(source, request, settings, interventions=interventions, **values)
        assert isinstance(done, Done)
        return done

    def prompt(self, source: str, request: str) -> list[int]:
        """Source and request as tokens; an empty one is refused.

        White space at their ends is no part of them: one line break more at the end of a file would
        change what a small model answers.
        """
        for name, text in (("source", source), ("request", request)):
            if not isinstance(text, str):
                raise UsageError(f"The {name} is {type(text).__name__}, expected text.")
            if not text.strip():
                raise UsageError(f"The {name} is empty. Give some text.")
        layout = self.model.config.records.prompt_format
        return self.tokenizer.prompt(source.rstrip(), request.strip(), layout)


def _pair(document: Document) -> Document:
    if isinstance(document, str) or len(document) != 2:
        raise UsageError(
            "A document is a pair of texts: (source, request).\n"
            "Give a list of them, or use generate(source, request) for one."
        )
    return document
