"""The lanes one after another, block by block: what packing must equal and is timed against.

Each lane runs alone on its own stack; lanes meet only at the barrier, where their notes commit.

Paper: §7.1, Table 3 (three serial lanes).
"""

from collections.abc import Sequence

import torch

from pdt.generation.lane import LaneWriter
from pdt.generation.ledger import Ledger, count_serial_memory
from pdt.generation.settings import GenerationSettings
from pdt.model.kernels.round import rounds_of
from pdt.model.one_lane import one_lane
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.notes.bus import NoteBlock, NotesBus
from pdt.notes.visibility import visibility_table


@torch.inference_mode()
def write_serially(
    model: ParallelDecoder,
    prompt: Sequence[int],
    settings: GenerationSettings,
    *,
    plans: PlanSet | None = None,
    eos: Sequence[int] = (),
    lanes: Sequence[int] | None = None,
    ledger: Ledger | None = None,
) -> tuple[list[list[int]], NotesBus]:
    """Tokens by lane and the bus, of one document. `lanes` lets only some lanes write.

    A `ledger` is told the time of each part, the rounds and the bytes of all caches.
    """
    config = model.config
    tau = config.lanes.block_tokens
    chosen = range(config.lanes.count) if lanes is None else lanes
    spent = Ledger() if ledger is None else ledger
    with spent.timed("prefill"):
        read = model.read_prompt(torch.tensor([list(prompt)], device=model.device))
    with spent.timed("plan"):
        plans = plans or model.plan(read)
    views = {lane: one_lane(model, lane) for lane in chosen}
    with spent.timed("prefill"):
        fronts = {
            lane: view.open_lanes(read, plans.select([lane]), suffix_tokens=settings.max_tokens)
            for lane, view in views.items()
        }
    rounds = {lane: rounds_of(view, fronts[lane]) for lane, view in views.items()}
    states = {lane: front.h_BKD for lane, front in fronts.items()}
    writers = {lane: LaneWriter(lane, settings, None, eos) for lane in chosen}
    table = visibility_table(config.notes.condition, config.lanes.count)
    bus = model.empty_bus()
    while any(writer.reason is None for writer in writers.values()):
        block = len(bus.blocks)
        for lane, view in views.items():
            with spent.timed("barrier"):
                notes = view.read_notes(bus, block, table[lane : lane + 1])
            writer = writers[lane]
            with spent.timed("decode"):
                for _ in range(tau):
                    if writer.reason is not None:
                        break
                    writer.take(view.logits(states[lane][:, :, None])[0, 0, 0])
                    token = torch.tensor([[[writer.tokens[-1]]]], device=model.device)
                    if writer.reason is None or len(writer.tokens) % tau == 0:
                        states[lane] = rounds[lane](token, notes)[:, :, 0]
        with spent.timed("barrier"):
            bus = bus.commit(block, _notes(model, states, writers, (block + 1) * tau))
    spent.lane_lengths = [[len(writers[lane].tokens) for lane in chosen]]
    spent.rounds = spent.tokens
    count_serial_memory(spent, list(fronts.values()))
    return [writers[lane].tokens for lane in chosen], bus


def _notes(
    model: ParallelDecoder,
    states: dict[int, torch.Tensor],
    writers: dict[int, LaneWriter],
    written: int,
) -> NoteBlock:
    """All lanes together; one that does not run or has ended publishes nothing."""
    blank = torch.zeros(1, 1, model.config.trunk.shape.width, device=model.device)
    lanes = range(model.config.lanes.count)
    h_BKD = torch.cat([states.get(lane, blank) for lane in lanes], dim=1)
    complete = [lane in writers and len(writers[lane].tokens) >= written for lane in lanes]
    return model.write_notes(h_BKD, torch.tensor([complete], device=model.device))
