"""From a compiled record and the taught document inside it to what the measures see of it.

Paper: §7.1, §7.2, §7.3.
"""

import hashlib
from typing import Any

from pdt.chronicle.markup import GENERATOR
from pdt.contract import parse_contract
from pdt.evaluation.lines.document import (
    HeldOutChoice,
    HeldOutDocument,
    HeldOutFact,
    HeldOutOpening,
    HeldOutReference,
    draw_transplant,
)
from pdt.evaluation.measures.longform import sentences_of
from pdt.records.align import tokenize_section
from pdt.teacher.answer import Answer, Dependency
from pdt.teacher.document import TaughtDocument
from pdt.terms import FactRole
from pdt.tokenizer import StudentTokenizer

MOST_CUE_WORDS = 4


def text_digest(document: TaughtDocument) -> str:
    """One name for what a model reads of a document, whatever its id."""
    text = f"{document.article.text}\n\n{document.answer.request}"
    return hashlib.sha256(text.encode()).hexdigest()


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
    owners, receivers = (row[f"dependency_{end}_R"].tolist() for end in ("owner", "receiver"))
    division = document.teacher.settings.get("division")
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
        references=_references(document, tokenizer),
        dependencies=len(document.answer.dependencies),
        dependency_receiver=receivers[0] if receivers else None,
        transplant=draw_transplant(document.record_id, facts),
        division=division if isinstance(division, str) else None,
        openings=tuple(_opening(s.paragraphs[0], tokenizer) for s in document.answer.sections),
        unread_choices=tuple(name for name, choice in coined.items() if choice is None),
        source=None if document.teacher.name == GENERATOR else document.article.text,
    )


def _references(
    document: TaughtDocument, tokenizer: StudentTokenizer
) -> tuple[HeldOutReference, ...]:
    """The dependencies on facts of the source."""
    found = []
    for dependency in document.answer.dependencies:
        if dependency.fact_id is None:
            continue
        owner, receiver = dependency.owner, dependency.receiver
        section = document.answer.sections[receiver.lane]
        tokens = tokenize_section(section, tokenizer, block_tokens=1).tokens_of_quote(
            receiver.quote
        )
        found.append(
            HeldOutReference(
                dependency_id=dependency.id,
                fact_id=dependency.fact_id,
                owner_lane=owner.lane,
                receiver_lane=receiver.lane,
                receiver_tokens=tuple(tokens),
            )
        )
    return tuple(found)


def _opening(paragraph: str, tokenizer: StudentTokenizer) -> HeldOutOpening:
    sentence = sentences_of(paragraph)[0]
    return HeldOutOpening(text=sentence, tokens=tuple(tokenizer.encode(sentence).ids))


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
    owner_section = answer.sections[owner.lane]
    coined_at = tokenize_section(owner_section, tokenizer, block_tokens=1).tokens_of(
        named, named + len(coined.text)
    )
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
        owner_token=coined_at[-1],
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
