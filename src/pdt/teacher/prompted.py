"""A teacher that is asked: prompt, reply, rules, and a repair while attempts are left.

Only replies are kept; everything here is derived from them again, so a repeated run with the same
replies gives the same documents.

Paper: §4.2.
"""

import hashlib
from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

from pdt.config import PdtConfig
from pdt.provenance import sha256_json
from pdt.sources.article import Article
from pdt.teacher.answer import Answer
from pdt.teacher.call import Call, Client, Message, Reply
from pdt.teacher.checks import CheckFailure, Failures, check_facts
from pdt.teacher.document import TaughtBy, TaughtDocument
from pdt.teacher.drafts import AnswerDraft, Draft, FactsDraft, reply_schema
from pdt.teacher.facts import FactInventory
from pdt.teacher.interface import Attempt, Taught, TeachingSource, Untaught, as_document
from pdt.teacher.place import place_answer, place_facts
from pdt.teacher.prompts import (
    article_message,
    facts_message,
    instructions,
    prompt_name,
    repair_message,
    teacher_prompt,
)
from pdt.terms import TeacherPass

V = TypeVar("V")
D = TypeVar("D", bound=Draft)

Check = Callable[[TaughtDocument], list[CheckFailure]]
"""Every rule on a whole document; those on tokens need the student's tokenizer."""

_NOBODY = TaughtBy(name="draft", version="1")


class PromptedTeacher:
    """A language model, held to the contract."""

    def __init__(self, client: Client, config: PdtConfig, check: Check) -> None:
        self.client = client
        self.config = config
        self.check = check

    def extract_facts(self, source: TeachingSource) -> Taught[FactInventory] | Untaught:
        def read(text: str, found: Failures) -> FactInventory | None:
            draft = _parse(FactsDraft, text, found)
            inventory = place_facts(draft, source.article, found) if draft else None
            if inventory is not None:
                check_facts(source.article, inventory, self.config.records.limits, found)
            return inventory

        return self._ask(
            TeacherPass.EXTRACT_FACTS,
            source,
            article_message(source.article),
            input_sha256=_digest(source.article),
            schema=FactsDraft,
            read=read,
        )

    def compose_answer(
        self, source: TeachingSource, inventory: FactInventory
    ) -> Taught[Answer] | Untaught:
        def read(text: str, found: Failures) -> Answer | None:
            draft = _parse(AnswerDraft, text, found)
            if draft is None:
                return None
            answer = place_answer(draft, inventory, found, lanes=self.config.lanes.count)
            if answer is not None:
                found.found += self.check(as_document(source, inventory, answer, _NOBODY))
            return answer

        return self._ask(
            TeacherPass.COMPOSE_ANSWER,
            source,
            f"{article_message(source.article)}\n\n{facts_message(inventory)}",
            input_sha256=sha256_json([_digest(source.article), inventory.model_dump(mode="json")]),
            schema=AnswerDraft,
            read=read,
        )

    def identity(self, source: TeachingSource, attempts: tuple[Attempt, ...]) -> TaughtBy:
        endpoint = self.config.teacher.endpoint
        return TaughtBy(
            name=endpoint.model or "unknown",
            version="+".join(prompt_name(teacher_pass) for teacher_pass in TeacherPass),
            settings={
                "parameters": endpoint.parameters,
                "calls": [attempt.call for attempt in attempts],
            },
        )

    def _ask(
        self,
        teacher_pass: TeacherPass,
        source: TeachingSource,
        content: str,
        *,
        input_sha256: str,
        schema: type[Draft],
        read: Callable[[str, Failures], V | None],
    ) -> Taught[V] | Untaught:
        opening = (
            Message(role="system", content=instructions(teacher_pass, self.config)),
            Message(role="user", content=content),
        )
        messages: tuple[Message, ...] = opening
        attempts: list[Attempt] = []
        found = Failures(source.record_id)
        for number in range(self.config.teacher.attempts):
            call = self._call(teacher_pass, number, messages, input_sha256, schema)
            reply = self.client.complete(call)
            found = Failures(source.record_id)
            value = read(reply.text, found) if _usable(reply, found) else None
            attempts.append(_attempt(call, reply, found))
            if value is not None and not found.found:
                return Taught(value, tuple(attempts))
            # The last reply is enough to repair; earlier ones would only cost tokens.
            messages = (
                *opening,
                Message(role="assistant", content=reply.text),
                Message(role="user", content=repair_message(found.found)),
            )
        return Untaught(teacher_pass, tuple(found.found), tuple(attempts))

    def _call(
        self,
        teacher_pass: TeacherPass,
        number: int,
        messages: tuple[Message, ...],
        input_sha256: str,
        schema: type[Draft],
    ) -> Call:
        endpoint, prompt = self.config.teacher.endpoint, prompt_name(teacher_pass)
        return Call(
            teacher_pass=teacher_pass,
            attempt=number,
            prompt=prompt,
            prompt_sha256=hashlib.sha256(teacher_prompt(prompt).encode()).hexdigest(),
            input_sha256=input_sha256,
            model=endpoint.model or "unknown",
            parameters={**endpoint.parameters, endpoint.output_limit: endpoint.max_output_tokens},
            reply_schema=reply_schema(schema),
            messages=messages,
        )


def _usable(reply: Reply, found: Failures) -> bool:
    if reply.refusal or reply.finish == "content_filter":
        found.add("reply_given", reply.refusal or reply.finish, "an answer")
    elif reply.finish == "length":
        measured = f"cut after {reply.output_tokens} tokens"
        found.add("reply_whole", measured, "a whole reply; write less or set max_output_tokens")
    return not found.found


def _parse(schema: type[D], text: str, found: Failures) -> D | None:
    try:
        return schema.model_validate_json(text)
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False)[:10]:
            path = ".".join(map(str, problem["loc"])) or "reply"
            found.add("reply_schema", f"{path}: {problem['msg']}", "JSON of the schema")
        return None


def _attempt(call: Call, reply: Reply, found: Failures) -> Attempt:
    return Attempt(
        teacher_pass=call.teacher_pass,
        number=call.attempt,
        call=call.key,
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        cost=reply.cost,
        broken=tuple(str(failure) for failure in found.found),
    )


def _digest(article: Article) -> str:
    return sha256_json(article.model_dump(mode="json"))
