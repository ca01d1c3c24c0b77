"""The rules that only the student's tokens can decide: lengths, the ceiling, the one-block delay.

Paper: §4.1 (Table 1), §4.2, Appendix A.
"""

from collections.abc import Sequence

from pdt.config import PdtConfig
from pdt.records.align import DocumentTokens, LaneTokens, tokenize_document
from pdt.records.dependencies import place_dependency
from pdt.teacher.checks import CheckFailure, Failures, check_text
from pdt.teacher.document import TaughtDocument
from pdt.tokenizer import StudentTokenizer


def check_document(
    document: TaughtDocument,
    config: PdtConfig,
    tokenizer: StudentTokenizer,
    tokens: DocumentTokens | None = None,
) -> list[CheckFailure]:
    """Every broken rule of the document, on text and on tokens."""
    tokens = tokens or tokenize_document(document, config, tokenizer)
    found = check_text(document, config.records.limits, lanes=config.lanes.count)
    _check_special(document, tokenizer, found)
    _check_lengths(config, tokens, found)
    _check_quotes(document, tokens.lanes, found)
    _check_delay(document, config, tokens.lanes, found)
    return found.found


def _check_quotes(
    document: TaughtDocument, tokens_K: Sequence[LaneTokens], found: Failures
) -> None:
    for roles in document.answer.roles:
        for lane, role in enumerate(roles.lanes[: len(tokens_K)]):
            for quote in role.quotes:
                if not tokens_K[lane].tokens_of_quote(quote):
                    found.add(
                        "quote_tokens",
                        "no token",
                        "at least one",
                        fact=roles.fact_id,
                        lane=lane,
                        start=quote.start,
                        end=quote.end,
                    )


def _check_special(document: TaughtDocument, tokenizer: StudentTokenizer, found: Failures) -> None:
    texts: list[tuple[int | None, str]] = [
        (None, document.article.text),
        (None, document.answer.request),
    ]
    texts += [(lane, section.text) for lane, section in enumerate(document.answer.sections)]
    for lane, text in texts:
        for token in tokenizer.special_tokens:
            if (start := text.find(token)) >= 0:
                found.add(
                    "no_special_tokens",
                    repr(token),
                    "plain text",
                    lane=lane,
                    start=start,
                    end=start + len(token),
                )


def _check_lengths(config: PdtConfig, tokens: DocumentTokens, found: Failures) -> None:
    limits = config.records.limits
    if not limits.source_tokens.holds(tokens.source_tokens):
        found.add("source_tokens", f"{tokens.source_tokens} tokens", limits.source_tokens)
    if len(tokens.prompt) > config.planner.max_prompt_tokens:
        ceiling = f"at most planner.max_prompt_tokens {config.planner.max_prompt_tokens}"
        found.add("prompt_tokens", f"{len(tokens.prompt)} tokens", ceiling)
    for lane, section in enumerate(tokens.lanes):
        length = len(section.starts)
        if not limits.section_tokens.holds(length):
            found.add("section_tokens", f"{length} tokens", limits.section_tokens, lane=lane)


def _check_delay(
    document: TaughtDocument,
    config: PdtConfig,
    tokens_K: Sequence[LaneTokens],
    found: Failures,
) -> None:
    delay, window = config.records.note_delay_blocks, config.notes.window_blocks
    for dependency in document.answer.dependencies:
        if max(dependency.owner.lane, dependency.receiver.lane) >= len(tokens_K):
            continue
        where: dict[str, int | str] = {"dependency": dependency.id}
        placed = place_dependency(dependency, tokens_K)
        if placed is None:
            found.add("quote_tokens", "a quote without a token", "at least one", **where)
            continue
        owner = tokens_K[dependency.owner.lane]
        if placed.owner_block >= owner.published_blocks:
            found.add(
                "dependency_published",
                f"ends in block {placed.owner_block}",
                f"one of the {owner.published_blocks} completed blocks",
                **where,
            )
        receiver = tokens_K[dependency.receiver.lane]
        if early := placed.early(delay):
            state = placed.owner_block + placed.lag
            found.add(
                "dependency_delay",
                f"owner quote ends in block {placed.owner_block}, first receiver token is chosen "
                f"in {f'block {state}' if state >= 0 else 'the prompt'}",
                f"chosen in block {placed.owner_block + delay} or later",
                **where,
                lane=dependency.receiver.lane,
                start=receiver.starts[early[0]],
                end=receiver.ends[early[-1]],
            )
        if late := placed.late(delay, window):
            found.add(
                "dependency_window",
                f"{placed.lags[-1]} blocks later",
                f"at most {delay + window - 1}",
                **where,
                lane=dependency.receiver.lane,
                start=receiver.starts[late[0]],
                end=receiver.ends[late[-1]],
            )
