"""A model that takes text and gives text: the public way to generate.

writer = pdt.Writer.load("runs/model")
for event in writer.stream(source, "Write a history of the siege."):
    ...
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pdt.errors import UsageError
from pdt.generation.events import Done, Event
from pdt.generation.interventions import Intervention
from pdt.generation.loop import Generation, start
from pdt.generation.settings import GenerationSettings
from pdt.model.kernels.matmul import use_best_way
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.model.store import load_model
from pdt.tokenizer import StudentTokenizer

Document = tuple[str, str]
"""A source and the request about it."""


class Writer:
    """A Parallel Decoder Transformer with its tokenizer."""

    def __init__(self, model: ParallelDecoder, tokenizer: StudentTokenizer | None = None) -> None:
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
        model = load_model(directory, trunk=trunk)
        use_best_way(model.device)
        return cls(model)

    def begin(
        self,
        documents: Sequence[Document],
        settings: GenerationSettings | None = None,
        *,
        interventions: Sequence[Intervention] = (),
        plans: PlanSet | None = None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Generation:
        """A generation over several documents at once, ready to run with `.events()`."""
        prompts = [self.prompt(source, request) for source, request in documents]
        return start(
            self.model,
            prompts,
            settings,
            tokenizer=self.tokenizer,
            interventions=interventions,
            plans=plans,
            should_stop=should_stop,
        )

    def stream(
        self,
        source: str,
        request: str,
        settings: GenerationSettings | None = None,
        *,
        interventions: Sequence[Intervention] = (),
    ) -> Iterator[Event]:
        """The events of one document, as they happen."""
        return self.begin([(source, request)], settings, interventions=interventions).events()

    def generate(
        self,
        source: str,
        request: str,
        settings: GenerationSettings | None = None,
        *,
        interventions: Sequence[Intervention] = (),
    ) -> Done:
        """The sections in presentation order, and the ledger."""
        *_, done = self.stream(source, request, settings, interventions=interventions)
        assert isinstance(done, Done)
        return done

    def prompt(self, source: str, request: str) -> list[int]:
        """Source and request as tokens; an empty one is refused."""
        for name, text in (("source", source), ("request", request)):
            if not isinstance(text, str):
                raise UsageError(f"The {name} is {type(text).__name__}, expected text.")
            if not text.strip():
                raise UsageError(f"The {name} is empty. Give some text.")
        layout = self.model.config.records.prompt_format
        return self.tokenizer.prompt(source, request, layout)
