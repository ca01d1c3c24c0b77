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


@dataclass(frozen=True)
class Encoded:
    """Token ids and, for each, the first and one-past-last character it covers."""

    ids: list[int]
    spans: list[tuple[int, int]]


class StudentTokenizer:
    """A tokenizer.json: the same bytes wherever the student runs.

    Its identity is the digest of those bytes. They are kept as they were read, so that a model
    directory holds the file that its records were compiled with.
    """

    def __init__(self, text: str, *, eos: str, where: str) -> None:
        self._text = text
        self._tokenizer = parse_tokenizer(text, where)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.sha256 = hashlib.sha256(text.encode()).hexdigest()
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
        return cls(read_tokenizer(file), eos=eos, where=str(file))

    @classmethod
    def in_memory(cls, tokenizer: Tokenizer, *, eos: str) -> "StudentTokenizer":
        """One that lies in no file has the bytes that saving it would write."""
        return cls(tokenizer.to_str(pretty=True), eos=eos, where="The tokenizer")

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
        return self._text


def prompt_text(source: str, request: str, prompt_format: str) -> str:
    """`prompt_format` with the source and the request in place; nothing is cut to fit.

    Paper: §2.1, §4.1.
    """
    before, _, rest = prompt_format.partition("{source}")
    between, _, after = rest.partition("{request}")
    return f"{before}{source}{between}{request}{after}"


def read_tokenizer(file: Path) -> str:
    """The text of a tokenizer.json, byte for byte."""
    try:
        return file.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise _not_a_tokenizer(file, error) from error


def parse_tokenizer(text: str, where: object) -> Tokenizer:
    """What a tokenizer.json says, or one clear refusal."""
    try:
        return Tokenizer.from_str(text)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library raises bare Exception, and panics beside it
        raise _not_a_tokenizer(where, error) from error


def _not_a_tokenizer(where: object, error: BaseException) -> CorruptFile:
    return CorruptFile(f"{where} is not a tokenizer.json: {error}\nTake it again from its source.")


def load_tokenizer(config: TokenizerConfig) -> StudentTokenizer:
    """The tokenizer a config names; another file than the one it is bound to is refused."""
    file = find_tokenizer(config)
    if file is None:
        tried = "\n".join(f"  {place}" for place in _places(config))
        raise UsageError(
            f"The tokenizer {config.name!r} was found in none of\n{tried}\n"
            "Run `make weights` for qwen3, or give --set records.tokenizer.file=PATH."
        )
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


def find_tokenizer(config: TokenizerConfig) -> Path | None:
    """The file a config names, where there is one."""
    return next((place for place in _places(config) if place.is_file()), None)


def packaged_tokenizer(config: TokenizerConfig) -> StudentTokenizer | None:
    """The tokenizer a config names, if it comes with the package: the same one everywhere."""
    here = config.file is None and _packaged(config).is_file()
    return load_tokenizer(config) if here else None


def _places(config: TokenizerConfig) -> list[Path]:
    if config.file is not None:
        return [Path(config.file)]
    return [_packaged(config), Path(".cache") / config.name / "tokenizer.json"]


def _packaged(config: TokenizerConfig) -> Path:
    return Path(str(resources.files("pdt"))) / "tokenizers" / f"{config.name}.tokenizer.json"
