"""What the answers of OpenAI's interfaces have in common."""

from typing import Any

from pdt.generation.events import Done, FinishReason
from pdt.serve.writing import Failed, Status, Writing
from pdt.web.refusals import Refusal


def finish_reason(reasons: set[FinishReason]) -> str:
    """`length` where any lane was cut off, `stop` where all came to their end."""
    cut = reasons & {FinishReason.LENGTH, FinishReason.INTERRUPTED}
    return "length" if cut else "stop"


def usage(writing: Writing) -> dict[str, int]:
    """Tokens read once, and written by all lanes together."""
    generation = writing.generation
    assert generation is not None
    prompt = len(generation.prompts[0])
    written = sum(len(writer.tokens) for writer in generation.writers[0])
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
    }


def result_of(writing: Writing) -> Done:
    """The end of a document, or the refusal that it ended with."""
    if writing.done is not None and writing.status is Status.DONE:
        return writing.done
    failed = next((e for e in writing.log.entries if isinstance(e, Failed)), None)
    raise as_refusal_of(failed)


def as_refusal_of(failed: Failed | None) -> Refusal:
    if failed is None:
        return Refusal(503, "The document was interrupted before its end.", code="interrupted")
    return Refusal(500, failed.message, code=failed.code)


def pdt_object(writing: Writing) -> dict[str, Any]:
    """What only this server says of an answer."""
    done = writing.done
    return {
        "generation": writing.id,
        "lane_at_position": None if done is None else done.documents[0].lane_at_position,
        "late": writing.late,
        "signs_out_of_range": writing.signs(),
    }
