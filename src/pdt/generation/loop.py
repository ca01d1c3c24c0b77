"""The one generation loop: plan, rounds, barriers, sections.

Paper: §3.6, Fig. 3, Eq. 1.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pdt.errors import UsageError
from pdt.generation.drafts import Drafting, Lookup
from pdt.generation.events import (
    Barrier,
    DocumentResult,
    Done,
    Event,
    FinishReason,
    Intervened,
    LaneFinished,
    LaneToken,
    Note,
    PlanReady,
    Round,
)
from pdt.generation.interventions import Intervention, edited_bus, fitted_to
from pdt.generation.lane import Continuations, LaneWriter
from pdt.generation.ledger import Ledger, count_memory, count_work
from pdt.generation.quoting import Quoting, Sentences
from pdt.generation.rounds import Advanced, RoundAsked, rounds_alone
from pdt.generation.row_costs import row_costs
from pdt.generation.settings import GenerationSettings
from pdt.generation.standing import Standing
from pdt.generation.trouble import trouble_of
from pdt.model.kernels.round import Notes
from pdt.model.pdt import Frontier, ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.model.prompt import Prompt
from pdt.notes.bus import NotesBus
from pdt.notes.visibility import visibility_table
from pdt.tokenizer import StudentTokenizer


@dataclass
class Generation:
    """Everything a running generation holds; `events` runs it."""

    model: ParallelDecoder
    settings: GenerationSettings
    prompts: list[list[int]]
    writers: list[list[LaneWriter]]
    """By document and lane."""
    interventions: list[Intervention]
    plans: PlanSet | None
    """As given (oracle) or, once planned, as the planner made them: before any intervention."""
    planned: bool
    """The plans are the planner's, not given."""
    ledger: Ledger
    bus: NotesBus
    """Every note as it was really published: before any intervention."""
    should_stop: Callable[[], bool]
    drafting: Drafting | None = None
    """How many tokens to draft; None drafts nothing."""
    company: int = 0
    """Rows of other documents in the same rounds."""
    read: Prompt | None = None
    """The prompts, where they have been read below the fork already."""
    plans_in_force: PlanSet | None = None
    """The plans as the lanes read them now: after every intervention so far."""

    def events(self) -> Iterator[Event]:
        """Run to the end, alone. Autograd is off inside, and untouched between two events."""
        running, answer_to = self.run(), rounds_alone(self.model)
        answer: Advanced | None = None
        while True:
            with torch.inference_mode():
                try:
                    said = running.send(answer)
                except StopIteration:
                    return
                answer = answer_to(said) if isinstance(said, RoundAsked) else None
            if not isinstance(said, RoundAsked):
                yield said

    def intervene(self, added: Sequence[Intervention]) -> None:
        """Further edits, between a barrier and the block after it; in force from there on."""
        block = len(self.bus.blocks)
        later = [replace(edit, from_block=max(edit.from_block, block)) for edit in added]
        self.interventions += fitted_to(later, self.model)
        self._edited = True

    def run(self) -> Generator[Event | RoundAsked, Advanced | None]:
        """The loop. Whoever runs it answers each round that it asks for, under inference mode."""
        # 1. Read the prompt once, plan once, open the lanes.
        self._started = time.perf_counter()
        self._edited = False
        frontier = self._open()
        yield from self._plan_events()
        with self.ledger.timed("decode"):
            logits_BKV = self.model.logits(frontier.h_BKD[:, :, None])[:, :, 0]
        self._lanes = [
            [Standing(w, h, v) for w, h, v in zip(*document, strict=True)]
            for document in zip(self.writers, frontier.h_BKD, logits_BKV, strict=True)
        ]
        may_read, notes = self._reads(0)
        forwards = 1
        while True:
            # 2. At a block's end all lanes publish together; only then does the next block begin.
            if self._all_wait():
                with self.ledger.timed("barrier"):
                    block, h_BKD = len(self.bus.blocks), self._states()
                    self._commit(h_BKD)
                    self._edit_plans(frontier, block + 1)
                    may_read, notes = self._reads(block + 1)
                    barrier = self._barrier_event(block, h_BKD, may_read)
                yield barrier
                if self._edited:
                    self._edited = False
                    self._edit_plans(frontier, block + 1)
                    may_read, notes = self._reads(block + 1)
                    yield from self._intervened(block + 1, may_read)
            if self.ledger.rounds and self.should_stop():
                yield from self._interrupt()
                break
            # 3. One token a lane from the distributions of one grouped forward, and one more for
            # each that was drafted rightly; then the next forward, unless all are at the end.
            with self.ledger.timed("sample"):
                taken, finished = self._choose(frontier)
            self.ledger.rounds = forwards
            yield Round(self.ledger.rounds - 1, taken)
            yield from finished
            if not self.lanes_writing:
                break
            if not self._all_wait():
                with self.ledger.timed("decode"):
                    asked = self._next_round(frontier, notes)
                    advanced = yield asked
                assert advanced is not None
                self._take_in(asked, advanced)
                forwards += 1
        # 4. A lane that ended was a masked row; its section takes its place in the order.
        self.ledger.seconds["total"] = time.perf_counter() - self._started
        self.ledger.lane_lengths = [[len(w.tokens) for w in row] for row in self.writers]
        self.ledger.troubles = [[trouble_of(w.section()) for w in row] for row in self.writers]
        self.ledger.drafted_tokens = [[lane.drafted for lane in row] for row in self._lanes]
        self.ledger.accepted_tokens = [[lane.accepted for lane in row] for row in self._lanes]
        count_memory(self.ledger, frontier)
        yield Done(self._documents(), self.ledger)

    def _open(self) -> Frontier:
        device = self.model.device
        rows = [torch.tensor(tokens) for tokens in self.prompts]
        tokens_BT = pad_sequence(rows, batch_first=True).to(device)
        lengths = torch.tensor([len(row) for row in rows], device=device)
        with self.ledger.timed("prefill"):
            prompt = self.read or self.model.read_prompt(tokens_BT, lengths)
        with self.ledger.timed("plan"):
            if self.plans is None:
                planned = self.model.plan(prompt)
                self.ledger.without_nodes = (~planned.valid_BKN.any(-1)).tolist()
                self.plans = planned.with_a_node()
            plans = self._edited_plans(0)
        with self.ledger.timed("prefill"):
            frontier = self.model.open_lanes(prompt, plans, suffix_tokens=self.settings.max_tokens)
        self.plans_in_force = plans
        count_work(self.ledger, self.model, len(self.prompts))
        return frontier

    def _choose(self, frontier: Frontier) -> tuple[tuple[LaneToken, ...], list[LaneFinished]]:
        """What the lanes that still write take from their distributions; the rest is taken back."""
        taken: list[LaneToken] = []
        finished: list[LaneFinished] = []
        for document, row in enumerate(self._lanes):
            for lane, standing in enumerate(row):
                wrote = standing.writer.reason is None
                for token, text in standing.choose(self._block_end, self.drafting):
                    taken.append(LaneToken(document, lane, token, text))
                    if len(standing.writer.tokens) == 1:
                        self.ledger.first_token_seconds[document][lane] = (
                            time.perf_counter() - self._started
                        )
                if wrote and standing.writer.reason is not None:
                    finished.append(self._finished(document, lane))
                frontier.taken.counts_BK[document][lane] = standing.taken
        return tuple(taken), finished

    def _next_round(self, frontier: Frontier, notes: Notes) -> RoundAsked:
        """What each lane takes in next; one that ended, or waits at the barrier, takes nothing."""
        rows = self.company + sum(not s.waits(self._block_end) for row in self._lanes for s in row)
        runs = [
            [s.next_run(self._block_end, self.drafting, rows) for s in row] for row in self._lanes
        ]
        longest = max(len(run) for row in runs for run in row)
        padded = [[run + [0] * (longest - len(run)) for run in row] for row in runs]
        tokens_BKT = torch.tensor(padded, device=self.model.device)
        return RoundAsked(frontier, tokens_BKT, [[len(run) for run in row] for row in runs], notes)

    def _take_in(self, asked: RoundAsked, advanced: Advanced) -> None:
        for document, row in enumerate(self._lanes):
            for lane, standing in enumerate(row):
                if count := asked.counts_BK[document][lane]:
                    standing.take_in(
                        advanced.h_BKTD[document, lane, :count], advanced.logits[document][lane]
                    )

    @property
    def _block_end(self) -> int:
        """Tokens of a lane's text at the end of the block that is being written."""
        return (len(self.bus.blocks) + 1) * self.model.config.lanes.block_tokens

    def _all_wait(self) -> bool:
        return all(lane.waits(self._block_end) for row in self._lanes for lane in row)

    def _states(self) -> Tensor:
        """Of the last token that each lane has taken in."""
        return torch.stack([torch.stack([lane.h_D for lane in row]) for row in self._lanes])

    def _commit(self, h_BKD: Tensor) -> None:
        """Only a lane that has written the whole block publishes."""
        complete = [[len(w.tokens) >= self._block_end for w in row] for row in self.writers]
        note = self.model.write_notes(h_BKD, torch.tensor(complete, device=self.model.device))
        self.bus = self.bus.commit(len(self.bus.blocks), note)

    def _reads(self, block: int) -> tuple[Tensor, Notes]:
        """The table and the notes for one block, as the interventions in force leave them."""
        config = self.model.config
        may_read = visibility_table(config.notes.condition, config.lanes.count)
        in_force = self._in_force(block)
        for intervention in in_force:
            may_read = intervention.edit_may_read(may_read)
        bus = edited_bus(self.bus, in_force, self.model)
        return may_read, self.model.read_notes(bus, block, may_read)

    def _edited_plans(self, block: int) -> PlanSet:
        assert self.plans is not None
        plans = self.plans
        for intervention in self._in_force(block):
            plans = intervention.edit_plans(plans)
        return plans

    def _edit_plans(self, frontier: Frontier, block: int) -> None:
        """An edit that begins here changes what lanes read from now on, not what they wrote."""
        if any(intervention.from_block == block for intervention in self.interventions):
            self.plans_in_force = self._edited_plans(block)
            frontier.plan_reads = self.model.read_plans(self.plans_in_force)

    def _plans_now(self) -> PlanSet:
        assert self.plans_in_force is not None
        return self.plans_in_force

    def _in_force(self, block: int) -> list[Intervention]:
        return [i for i in self.interventions if i.from_block <= block]

    @property
    def lanes_writing(self) -> int:
        return sum(writer.reason is None for row in self.writers for writer in row)

    def _interrupt(self) -> Iterator[LaneFinished]:
        for document, row in enumerate(self.writers):
            for lane, writer in enumerate(row):
                if writer.reason is None:
                    writer.reason = FinishReason.INTERRUPTED
                    yield self._finished(document, lane)

    def _finished(self, document: int, lane: int) -> LaneFinished:
        writer = self.writers[document][lane]
        assert writer.reason is not None
        return LaneFinished(document, lane, writer.reason, len(writer.tokens), writer.finish())

    def _plan_events(self) -> Iterator[PlanReady]:
        order, nodes = self._order_and_nodes()
        for document, prompt in enumerate(self.prompts):
            yield PlanReady(document, len(prompt), order[document], nodes[document])

    def _intervened(self, block: int, may_read_KK: Tensor) -> Iterator[Intervened]:
        order, nodes = self._order_and_nodes()
        table = _as_tuples(may_read_KK)
        for document in range(len(self.prompts)):
            yield Intervened(document, block, order[document], nodes[document], table)

    def _order_and_nodes(self) -> tuple[list[tuple[int, ...]], list[tuple[tuple[int, ...], ...]]]:
        """By document: which lane stands where, and by lane which plan nodes exist."""
        plans = self._plans_now()
        order = [tuple(lanes) for lanes in plans.lane_at_position.tolist()]
        nodes = [
            tuple(tuple(n for n, exists in enumerate(lane) if exists) for lane in document)
            for document in plans.valid_BKN.tolist()
        ]
        return order, nodes

    def _barrier_event(self, block: int, h_BKD: Tensor, may_read_KK: Tensor) -> Barrier:
        plans = self._plans_now()
        scores = self.model.heads.progress(h_BKD[:, :, None], plans.nodes_BKNP)[:, :, 0]
        node_BK = scores.masked_fill(~plans.valid_BKN, -torch.inf).argmax(-1)
        committed = self.bus.blocks[block]
        notes = tuple(
            Note(
                document,
                lane,
                tuple(committed.codes_BKM[document, lane].tolist()),
                int(node_BK[document, lane]) if plans.valid_BKN[document, lane].any() else None,
            )
            for document in range(len(self.prompts))
            for lane in range(self.bus.lanes)
            if committed.published_BK[document, lane]
        )
        return Barrier(block, notes, _as_tuples(may_read_KK))

    def _documents(self) -> tuple[DocumentResult, ...]:
        order = self._plans_now().lane_at_position.tolist()
        return tuple(
            DocumentResult(tuple(self.writers[document][lane].section() for lane in lanes))
            for document, lanes in enumerate(order)
        )


def start(
    model: ParallelDecoder,
    prompts: Sequence[Sequence[int]],
    settings: GenerationSettings | None = None,
    *,
    tokenizer: StudentTokenizer | None = None,
    interventions: Sequence[Intervention] = (),
    plans: PlanSet | None = None,
    forced: Sequence[Sequence[Sequence[int]]] | None = None,
    continuations: Sequence[Sequence[Continuations]] | None = None,
    read: Prompt | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Generation:
    """Check everything, then return a generation that has not begun.

    `plans` gives an oracle plan; `forced` gives tokens, by document and lane, that come first;
    `continuations` tokens that follow, by document and lane, whenever a cue has been written;
    `read` is what `read_prompt` gave for these very prompts, to share it between generations.
    """
    settings = settings or GenerationSettings()
    edits = fitted_to(interventions, model)
    _check_lengths(model, prompts, settings)
    eos = (tokenizer.eos_id,) if tokenizer is not None and settings.stop_at_eos else ()
    lanes = model.config.lanes.count
    sources = [_sentences(model, prompt, tokenizer) for prompt in prompts if settings.quote]
    writers = [
        [
            LaneWriter(
                lane,
                settings,
                tokenizer,
                eos,
                forced[document][lane] if forced else (),
                continuations[document][lane] if continuations else None,
                Lookup(prompt) if settings.drafts else None,
                Quoting(sources[document], eos) if settings.quote else None,
            )
            for lane in range(lanes)
        ]
        for document, prompt in enumerate(prompts)
    ]
    return Generation(
        model=model,
        settings=settings,
        prompts=[list(prompt) for prompt in prompts],
        writers=writers,
        interventions=edits,
        plans=None if plans is None else plans.to(model.device),
        planned=plans is None,
        ledger=Ledger(first_token_seconds=[[0.0] * lanes for _ in prompts]),
        bus=model.empty_bus(),
        should_stop=should_stop,
        drafting=Drafting(settings.drafts, row_costs(model)) if settings.drafts else None,
        read=read,
    )


def _sentences(
    model: ParallelDecoder, prompt: Sequence[int], tokenizer: StudentTokenizer | None
) -> Sentences:
    if tokenizer is None:
        raise UsageError("Lanes quote sentences, and tokens alone are none. Give a tokenizer.")
    return Sentences(prompt, model.config, tokenizer)


def _check_lengths(
    model: ParallelDecoder, prompts: Sequence[Sequence[int]], settings: GenerationSettings
) -> None:
    if not prompts:
        raise UsageError("There is no document to write. Give at least one prompt.")
    limit, shape = model.config.planner.max_prompt_tokens, model.config.trunk.shape
    for document, prompt in enumerate(prompts):
        name = f"The prompt of document {document}" if len(prompts) > 1 else "The prompt"
        if len(prompt) == 0:
            raise UsageError(f"{name} is empty.")
        if len(prompt) > limit:
            raise UsageError(
                f"{name} has {len(prompt)} tokens; the limit is {limit} "
                "(planner.max_prompt_tokens).\nA source is never truncated: give a shorter one."
            )
        if len(prompt) + settings.max_tokens > shape.max_positions:
            raise UsageError(
                f"{name} has {len(prompt)} tokens and each lane may "
                f"write {settings.max_tokens}; the trunk has {shape.max_positions} positions.\n"
                "Give a shorter source or a smaller max_tokens."
            )
        if not all(0 <= token < shape.vocabulary for token in prompt):
            raise UsageError(
                f"{name} has a token outside the vocabulary of "
                f"{shape.vocabulary}. Is it of this model's tokenizer?"
            )


def _as_tuples(may_read_KK: Tensor) -> tuple[tuple[bool, ...], ...]:
    return tuple(tuple(row) for row in may_read_KK.tolist())
