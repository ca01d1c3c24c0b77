"""A traced generation as one picture: lanes side by side, block under block, notes at barriers.

The SVG needs nothing beside itself. A viewer that plays CSS animations shows each token in the
round it was written in and each note when its barrier commits it; others show it finished.

Paper: Fig. 3.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from html import escape

from pdt.errors import UsageError
from pdt.generation.text import TextStream
from pdt.generation.trace import Trace
from pdt.tokenizer import StudentTokenizer

COLOURS = ("#0b7285", "#2b8a3e", "#862e9c", "#a35200", "#1864ab", "#c92a2a")
CELL, GAP, MARGIN, LINE, HEAD = 300, 14, 20, 17, 64
LINE_CHARACTERS = 43
ROUND_SECONDS = 0.07
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
STYLE = """
text { font: 12.5px ui-sans-serif, "Segoe UI", Helvetica, Arial, sans-serif; fill: #212529 }
.small { font-size: 11px; fill: #868e96 }
.code { font: 10.5px ui-monospace, Menlo, Consolas, monospace; fill: #fff }
.mark { font-weight: 700; text-decoration: underline }
.word { animation: word .15s backwards }
.note { animation: note .6s backwards }
@keyframes word { from { fill-opacity: 0 } }
@keyframes note { from { opacity: 0 } }
@media (prefers-reduced-motion) { .word, .note { animation: none } }
"""


@dataclass
class _Block:
    """What one lane wrote in one block, in lines, and its note."""

    lines: list[list[tuple[int, str]]] = field(default_factory=lambda: [[]])
    """Round and text of each piece."""
    codes: tuple[int, ...] | None = None

    def add(self, at: int, piece: str) -> None:
        for number, part in enumerate(piece.split("\n")):
            width = sum(len(text) for _, text in self.lines[-1])
            full = part.startswith(" ") and width + len(part) > LINE_CHARACTERS
            if self.lines[-1] and (number or full):
                self.lines.append([])
            if not self.lines[-1]:
                part = part.lstrip()
            if part:
                self.lines[-1].append((at, part))


def draw_picture(
    trace: Trace, document: int, tokenizer: StudentTokenizer, marked: Collection[str] = ()
) -> str:
    """The SVG of one document of a trace; words in `marked` stand out."""
    if not 0 <= document < len(trace.lanes):
        raise UsageError(f"The trace holds documents 0 to {len(trace.lanes) - 1}, not {document}.")
    lanes = [_blocks(trace, document, lane, tokenizer) for lane in range(len(trace.lanes[0]))]
    order = trace.plans.lane_at_position[document].tolist()
    width = 2 * MARGIN + len(lanes) * CELL + (len(lanes) - 1) * GAP
    body, top = _heads(order), HEAD
    for number in range(max(map(len, lanes))):
        row = [blocks[number] if number < len(blocks) else None for blocks in lanes]
        drawn, top = _row(row, number, top, width, trace.block_tokens, marked)
        body += drawn
    words = f"{len(lanes)} lanes write one document at once, a token a lane and round."
    note = (
        f"{words} Under each block of {trace.block_tokens} tokens stands its note, "
        "which the other lanes read from the next block on."
    )
    body.append(f'<text class="small" x="{MARGIN + 4}" y="{top + 10}">{note}</text>')
    top += 24
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" role="img">',
            f"<title>{words}</title><style>{STYLE}</style>",
            f'<rect width="{width}" height="{top}" rx="8" fill="#fff" stroke="#dee2e6"/>',
            *body,
            "</svg>\n",
        ]
    )


def _blocks(trace: Trace, document: int, lane: int, tokenizer: StudentTokenizer) -> list[_Block]:
    wrote, size = trace.lanes[document][lane], trace.block_tokens
    blocks: list[_Block] = []
    stream = TextStream(tokenizer, trace.settings.stop)
    for at, token in enumerate(wrote.tokens):
        if at % size == 0:
            blocks.append(_Block())
        blocks[-1].add(at, stream.push(token))
    if blocks:
        blocks[-1].add(len(wrote.tokens), stream.finish())
    for block, codes, published in zip(blocks, trace.codes, trace.published, strict=False):
        if published[document][lane]:
            block.codes = codes[document][lane]
    return blocks


def _heads(lane_at_position: Sequence[int]) -> list[str]:
    lines = []
    for position, lane in enumerate(lane_at_position):
        colour = COLOURS[lane % len(COLOURS)]
        said = f" · its own plan · section {position + 1}"
        lines += [
            f'<rect x="{_left(lane)}" y="18" width="{CELL}" height="30" rx="5" fill="{colour}"/>',
            f'<text x="{_left(lane) + 10}" y="38" style="fill:#fff;font-weight:700">lane {lane}'
            f'<tspan style="font-weight:400">{said}</tspan></text>',
        ]
    return lines


def _row(
    row: Sequence[_Block | None],
    number: int,
    top: int,
    width: int,
    block_tokens: int,
    marked: Collection[str],
) -> tuple[list[str], int]:
    """One block of all lanes and the barrier under it; and where the next row begins."""
    drawn = []
    height = LINE * max(len(block.lines) for block in row if block is not None)
    for lane, block in enumerate(row):
        for place, line in enumerate(block.lines if block is not None else ()):
            words = "".join(_word(at, text, lane, marked) for at, text in line)
            y = top + 14 + place * LINE
            drawn.append(f'<text x="{_left(lane) + 4}" y="{y}" xml:space="preserve">{words}</text>')
    bottom = top + height + 10
    if all(block is None or block.codes is None for block in row):
        return drawn, bottom + 8
    delay = f"animation-delay:{(number + 1) * block_tokens * ROUND_SECONDS:.2f}s"
    ends = f'x1="{MARGIN}" x2="{width - MARGIN}" y1="{bottom + 10}" y2="{bottom + 10}"'
    drawn.append(f'<g class="note" style="{delay}"><line {ends} stroke="#ced4da"/>')
    for lane, block in enumerate(row):
        codes = () if block is None or block.codes is None else block.codes
        for place, code in enumerate(codes):
            x, colour = _left(lane) + 4 + place * 26, COLOURS[lane % len(COLOURS)]
            drawn += [
                f'<rect x="{x}" y="{bottom}" width="23" height="19" rx="3" fill="{colour}"/>',
                f'<text class="code" x="{x + 5}" y="{bottom + 13}">{code:02x}</text>',
            ]
    return [*drawn, "</g>"], bottom + 30


def _word(at: int, text: str, lane: int, marked: Collection[str]) -> str:
    delay = f"animation-delay:{at * ROUND_SECONDS:.2f}s"
    if text.strip(" .,;:") in marked:
        colour = COLOURS[lane % len(COLOURS)]
        return f'<tspan class="word mark" style="{delay};fill:{colour}">{_safe(text)}</tspan>'
    return f'<tspan class="word" style="{delay}">{_safe(text)}</tspan>'


def _left(lane: int) -> int:
    return MARGIN + lane * (CELL + GAP)


def _safe(text: str) -> str:
    """As XML may hold it; an untrained model writes control characters, which it may not."""
    return escape(_NOT_XML.sub("\ufffd", text))
