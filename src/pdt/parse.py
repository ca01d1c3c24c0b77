"""JSON and YAML from outside: a plain value, or one error whatever the text leads a library to.

The libraries let out what their own code met: an impossible date is a ValueError, deep nesting a
RecursionError, an unknown boolean a KeyError. Here they are all `NotParsed`, with a short message.
"""

import json
import re
import sys
from typing import Any

import yaml

_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_BRACKETS = re.compile(r"[\[\]{}]")
_DEEPEST = 200
_WIDEST = 60


class NotParsed(ValueError):
    """The text is not what it should be; the message says why in a few words."""


class _PlainLoader(yaml.SafeLoader):
    """No aliases: a few lines of them can stand for more values than memory holds."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise NotParsed(f"line {event.start_mark.line + 1} uses an alias (*); write it out")
        return super().compose_node(parent, index)


def parse_yaml(text: str) -> Any:
    """The value of a YAML text that a user wrote."""
    if _depth(text) > _DEEPEST:  # its scanner would take seconds to find out
        raise NotParsed("it nests too deeply")
    try:
        value = yaml.load(text, Loader=_PlainLoader)
    except NotParsed:
        raise
    except RecursionError:
        raise NotParsed("it nests too deeply") from None
    except yaml.YAMLError as error:
        raise NotParsed(" ".join(str(error).split())) from error
    except Exception as error:  # the constructors raise what the value leads them to
        why = str(error)
        if "set_int_max_str_digits" in why:  # Python's own remedy, which is none here
            why = f"a whole number of more than {sys.get_int_max_str_digits()} digits"
        raise NotParsed(f"a value is impossible: {why}") from error
    return value


def _depth(text: str) -> int:
    """How many brackets are open at once, those in quotes included."""
    deepest = depth = 0
    for bracket in _BRACKETS.findall(text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; half of a surrogate pair, which no file can hold, is refused."""
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        value = json.loads(decoded)
        if _ESCAPED_SURROGATE.search(decoded):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise NotParsed("it nests too deeply") from None
    except UnicodeEncodeError:
        raise NotParsed("it holds half of a surrogate pair") from None
    except ValueError as error:
        raise NotParsed(str(error)) from error
    return value


def shown(value: object) -> str:
    """A value in a message: short, and never an error of its own."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of too many digits, a list too deep
        return f"a {type(value).__name__} too large to show"
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
