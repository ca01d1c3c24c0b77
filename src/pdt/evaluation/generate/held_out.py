"""A held-out document as the measures see it: who should write what, and which words were coined.

Taken from a compiled record and the taught document inside it; stored beside every result, so that
its tables can be computed again without the corpus.

Paper: §7.1, §7.2, §7.3.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pdt.contract import Contract, Id, Index, Line, Sha256, parse_contract
from pdt.errors import UsageError
from pdt.records.align import tokenize_section
from pdt.records.batch import RecordBatch, RecordShards, collate
from pdt.teacher.answer import Answer, Dependency
from pdt.teacher.document import TaughtDocument
from pdt.terms import FactRole, Split
from pdt.tokenizer import StudentTokenizer

MOST_CUE_WORDS = 4


class HeldOutFact(Contract):
    """One fact, its owner and who else may mention it. Lanes are the teacher's."""

    id: Id
    statement: Line
    hard_negative: Line
    owner_lane: Index
    owner_node: Index
    reference_lanes: tuple[Index, ...]
    """Lanes whose teacher section mentions it."""
    permitted_lanes: tuple[Index, ...]
    """Lanes whose plan allows a mention, used or not."""


class HeldOutChoice(Contract):
    """One coined word that a receiver has to learn from its owner."""

    dependency_id: Id
    choice_id: Id
    text: Line
    alternatives: tuple[Line, ...]
    entropy_bits: float
    owner_lane: Index
    receiver_lane: Index
    cue: Line
    """The words that stand before it at both ends: `the Song of the`."""
    cue_tokens: tuple[int, ...]
    alternative_tokens: tuple[tuple[int, ...], ...]
    """The tokens of each alternative behind the cue."""
    receiver_token: Index
    """Its first token in the receiver's section."""


class HeldOutDocument(Contract):
    """What a result directory keeps of one document."""

    record_id: Id
    split: Split
    family_key: Id
    category: Id
    teacher: Line
    text_sha256: Sha256
    """Of source and request: what the model was given."""
    facts: tuple[HeldOutFact, ...]
    section_lengths: tuple[Index, ...]
    """Tokens of each teacher section, EOS included."""
    dependency_tokens: tuple[tuple[Index, ...], ...]
    """Per lane, the tokens that overlap a required receiver quote."""
    dependency_owner: Index | None
    """The lane whose notes the controls attack: owner of the first dependency."""
    attacked_tokens: tuple[tuple[Index, ...], ...]
    """Those of the dependency tokens that need this lane's notes."""
    choices: tuple[HeldOutChoice, ...]
    unread_choices: tuple[Id, ...] = ()
    """Coined dependencies that no measure can read: no words lead to it at both ends, or its
    alternatives are not listed or begin with the same token."""

    def under_attack(self) -> "HeldOutDocument":
        """Only what needs the attacked lane: where others are needed too, their notes are whole."""
        return self.model_copy(
            update={
                "dependency_tokens": self.attacked_tokens,
                "choices": tuple(c for c in self.choices if c.owner_lane == self.dependency_owner),
            }
        )


@dataclass(frozen=True)
class HeldOutBatch:
    """Documents with their padded tensors."""

    documents: tuple[HeldOutDocument, ...]
    records: RecordBatch


def text_digest(document: TaughtDocument) -> str:
    """One name for what a model reads of a document, whatever its id."""
    text = f"{document.article.text}\n\n{document.answer.request}"
    return hashlib.sha256(text.encode()).hexdigest()


def held_out_batches(
    shards: RecordShards, tokenizer: StudentTokenizer, *, documents: int, size: int
) -> list[HeldOutBatch]:
    """The first `documents` of the corpus, in batches."""
    rows = list(_first_rows(shards, documents))
    if len(rows) < 2:
        raise UsageError(
            f"{shards.directory} holds {len(rows)} documents of the split {shards.split}; an "
            "evaluation needs two or more.\nWrite a corpus of that split and compile it, or give "
            "--split."
        )
    return _batches([(held_out(row, tokenizer), row) for row in rows], size)


def coined_batches(
    shards: RecordShards, tokenizer: StudentTokenizer, *, documents: int, size: int
) -> list[HeldOutBatch]:
    """Those of the same documents in which something is coined."""
    pairs = [(held_out(row, tokenizer), row) for row in _first_rows(shards, documents)]
    if not with_coined([document for document, _ in pairs]):
        return []
    return _batches([pair for pair in pairs if pair[0].choices], size)


def with_coined(documents: Sequence[HeldOutDocument]) -> list[HeldOutDocument]:
    """Those in which something is coined; a single one has no other to exchange notes with."""
    chosen = [document for document in documents if document.choices]
    return chosen if len(chosen) > 1 else []


def teacher_prose(
    shards: RecordShards, tokenizer: StudentTokenizer, *, documents: int
) -> list[tuple[HeldOutDocument, list[str]]]:
    """Documents with the teacher's own sections, for calibration."""
    prose = []
    for row in _first_rows(shards, documents):
        taught = parse_contract(TaughtDocument, row["document"], where=row["record_id"])
        texts = [section.text for section in taught.answer.sections]
        prose.append((held_out(row, tokenizer), texts))
    return prose


def _batches(
    pairs: Sequence[tuple[HeldOutDocument, dict[str, Any]]], size: int
) -> list[HeldOutBatch]:
    return [
        HeldOutBatch(
            tuple(document for document, _ in pairs[start:end]),
            collate([row for _, row in pairs[start:end]]),
        )
        for start, end in pairwise(batch_borders(len(pairs), size))
    ]


def batch_borders(documents: int, size: int) -> list[int]:
    """As even as can be, and never of one document: notes are exchanged inside a batch."""
    count = max(1, min(-(-documents // size), documents // 2))
    return [round(n * documents / count) for n in range(count + 1)]


def _first_rows(shards: RecordShards, documents: int) -> Iterator[dict[str, Any]]:
    taken = 0
    for shard in shards.shards:
        for row in shard.rows():
            if taken == documents:
                return
            if shards.split is None or row["split"] == shards.split:
                taken += 1
                yield row


def held_out(row: dict[str, Any], tokenizer: StudentTokenizer) -> HeldOutDocument:
    """One row of a shard, with its document, as the measures see it."""
    where = f"the document of record {row['record_id']}"
    document = parse_contract(TaughtDocument, row["document"], where=where)
    roles = {entry.fact_id: entry for entry in document.answer.roles}
    facts = tuple(
        HeldOutFact(
            id=fact.id,
            statement=fact.statement,
            hard_negative=fact.hard_negative.statement,
            owner_lane=int(row["owner_lane_F"][number]),
            owner_node=int(row["owner_node_F"][number]),
            reference_lanes=tuple(
                lane
                for lane, role in enumerate(roles[fact.id].lanes)
                if role.role is FactRole.REFERENCE
            ),
            permitted_lanes=tuple(row["permitted_KF"][:, number].nonzero()[0].tolist()),
        )
        for number, fact in enumerate(document.inventory.facts)
    )
    coined = {
        dependency.id: _choice(dependency, document.answer, tokenizer)
        for dependency in document.answer.dependencies
        if dependency.coined is not None
    }
    owners = row["dependency_owner_R"].tolist()
    return HeldOutDocument(
        record_id=document.record_id,
        split=document.split,
        family_key=document.family_key,
        category=document.category,
        teacher=document.teacher.name,
        text_sha256=text_digest(document),
        facts=facts,
        section_lengths=tuple(row["section_lengths_K"].tolist()),
        dependency_tokens=tuple(
            tuple(lane.nonzero()[0].tolist()) for lane in row["dependency_token_KT"]
        ),
        dependency_owner=owners[0] if owners else None,
        attacked_tokens=_attacked_tokens(document.answer, tokenizer),
        choices=tuple(choice for choice in coined.values() if choice is not None),
        unread_choices=tuple(name for name, choice in coined.items() if choice is None),
    )


def _attacked_tokens(answer: Answer, tokenizer: StudentTokenizer) -> tuple[tuple[int, ...], ...]:
    """By lane, the tokens whose dependencies the first dependency's owner serves."""
    lanes = [tokenize_section(s, tokenizer, block_tokens=1) for s in answer.sections]
    found: list[set[int]] = [set() for _ in lanes]
    for dependency in answer.dependencies:
        if dependency.owner.lane == answer.dependencies[0].owner.lane:
            receiver = dependency.receiver
            found[receiver.lane].update(lanes[receiver.lane].tokens_of_quote(receiver.quote))
    return tuple(tuple(sorted(tokens)) for tokens in found)


def _choice(
    dependency: Dependency, answer: Answer, tokenizer: StudentTokenizer
) -> HeldOutChoice | None:
    """A coined choice whose alternatives are listed and begin with different tokens, or None."""
    coined, owner, receiver = dependency.coined, dependency.owner, dependency.receiver
    assert coined is not None
    section = answer.sections[receiver.lane]
    at = receiver.quote.start + receiver.quote.text.find(coined.text)
    owner_text = answer.sections[owner.lane].text
    named = owner.quote.start + owner.quote.text.find(coined.text)
    cue = _shared_words(owner_text[:named], section.text[:at])
    if not cue or coined.text not in coined.alternatives:
        return None
    tokens = tuple(
        _tokens_behind(cue, alternative, tokenizer) for alternative in coined.alternatives
    )
    if len({behind[:1] for _, behind in tokens}) != len(tokens):
        return None
    place = tokenize_section(section, tokenizer, block_tokens=1).tokens_of(at, at + 1)
    return HeldOutChoice(
        dependency_id=dependency.id,
        choice_id=coined.choice_id,
        text=coined.text,
        alternatives=coined.alternatives,
        entropy_bits=coined.entropy_bits,
        owner_lane=owner.lane,
        receiver_lane=receiver.lane,
        cue=cue,
        cue_tokens=tokens[0][0],
        alternative_tokens=tuple(behind for _, behind in tokens),
        receiver_token=place[0],
    )


def _shared_words(owner: str, receiver: str) -> str:
    """The last words that both texts end with, at most a few."""
    shared: list[str] = []
    for ours, theirs in zip(reversed(owner.split()), reversed(receiver.split()), strict=False):
        if ours != theirs or len(shared) == MOST_CUE_WORDS:
            break
        shared.append(ours)
    return " ".join(reversed(shared))


def _tokens_behind(
    cue: str, text: str, tokenizer: StudentTokenizer
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tokens of the cue and of the words behind it, as they stand inside a sentence."""
    before = f"x {cue}"
    encoded = tokenizer.encode(f"{before} {text}.")
    ends = [end for _, end in encoded.spans]
    first = next(n for n, (start, _) in enumerate(encoded.spans) if start >= 1)
    cue_end = next(n for n, end in enumerate(ends) if end > len(before))
    text_end = next(n for n, end in enumerate(ends) if end > len(before) + 1 + len(text))
    return tuple(encoded.ids[first:cue_end]), tuple(encoded.ids[cue_end:text_end])
