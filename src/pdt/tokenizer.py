"""The student's own tokenizer, bound by digest, with the characters behind every token.

Paper: §4.3.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path

from tokenizers import Tokenizer

from pdt.config import TokenizerConfig
from pdt.errors import BindingMismatch, CorruptFile, UsageError
from pdt.provenance import sha256_file


@dataclass(frozen=True)
class Encoded:
    """Token ids and, for each, the first and one-past-last character it covers."""

    ids: list[int]
    spans: list[tuple[int, int]]


class StudentTokenizer:
    """A tokenizer.json: the same bytes wherever the student runs."""

    def __init__(self, tokenizer: Tokenizer, *, eos: str, sha256: str, where: str) -> None:
        self._tokenizer = tokenizer
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.sha256 = sha256
        self.eos = eos
        eos_id = self._tokenizer.token_to_id(eos)
        if eos_id is None:
            raise UsageError(
                f"{where} has no token {eos!r}.\n"
                "Set records.tokenizer.eos to its end-of-text token."
            )
        self.eos_id: int = eos_id

    @classmethod
    def from_file(cls, file: Path, *, eos: str) -> "StudentTokenizer":
        return cls(read_tokenizer(file), eos=eos, sha256=sha256_file(file), where=str(file))

    @classmethod
    def in_memory(cls, tokenizer: Tokenizer, *, eos: str) -> "StudentTokenizer":
        digest = hashlib.sha256(tokenizer.to_str().encode()).hexdigest()
        return cls(tokenizer, eos=eos, sha256=digest, where="The tokenizer")

    @property
    def vocabulary(self) -> int:
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    @cached_property
    def special_tokens(self) -> tuple[str, ...]:
        """Texts that would be read as control tokens instead of prose."""
        added = self._tokenizer.get_added_tokens_decoder().values()
        return tuple(sorted({token.content for token in added if token.special} | {self.eos}))

    def encode(self, text: str) -> Encoded:
        """Tokens of `text`, with no token added at either end."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return Encoded(encoding.ids, encoding.offsets)

    def decode(self, ids: Sequence[int]) -> str:
        """Everything the tokens say, control tokens included."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=False)

    def prose(self, ids: Sequence[int]) -> str:
        """What a reader sees of the tokens."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=True)

    def prompt(self, source: str, request: str, prompt_format: str) -> list[int]:
        """Source and request as the student reads them."""
        for name, text in (("source", source), ("request", request)):
            for special in self.special_tokens:
                if special in text:
                    raise UsageError(
                        f"The {name} contains {special!r}, which the model would read as a control "
                        "token.\nRemove it from the text."
                    )
        return self.encode(prompt_text(source, request, prompt_format)).ids

    def as_json(self) -> str:
        """The tokenizer.json that a model directory keeps."""
        return self._tokenizer.to_str()


def prompt_text(source: str, request: str, prompt_format: str) -> str:
    """`prompt_format` with the source and the request in place; nothing is cut to fit.

    Paper: §2.1, §4.1.
    """
    before, _, rest = prompt_format.partition("{source}")
    between, _, after = rest.partition("{request}")
    return f"{before}{source}{between}{request}{after}"


def read_tokenizer(file: Path) -> Tokenizer:
    """A tokenizer.json, or one clear refusal."""
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises bare Exception
        raise CorruptFile(
            f"{file} is not a tokenizer.json: {error}\nTake it again from its source."
        ) from error


def load_tokenizer(config: TokenizerConfig) -> StudentTokenizer:
    """The tokenizer a config names; another file than the one it is bound to is refused."""
    file = _find(config)
    tokenizer = StudentTokenizer.from_file(file, eos=config.eos)
    if config.sha256 is not None and tokenizer.sha256 != config.sha256:
        raise BindingMismatch(
            f"{file} is not the student's tokenizer.",
            [("sha256", tokenizer.sha256, config.sha256)],
            "Tokens of another tokenizer mean other text (§4.3). Take the named file, for qwen3 "
            "with `make weights`.",
            sides=("file", "config"),
        )
    return tokenizer


def _find(config: TokenizerConfig) -> Path:
    if config.file is not None:
        places = [Path(config.file)]
    else:
        packaged = (
            Path(str(resources.files("pdt"))) / "tokenizers" / f"{config.name}.tokenizer.json"
        )
        places = [packaged, Path(".cache") / config.name / "tokenizer.json"]
    for place in places:
        if place.is_file():
            return place
    tried = "\n".join(f"  {place}" for place in places)
    raise UsageError(
        f"The tokenizer {config.name!r} was found in none of\n{tried}\n"
        "Run `make weights` for qwen3, or give --set records.tokenizer.file=PATH."
    )
