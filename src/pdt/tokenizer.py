"""The student's own tokenizer, bound by digest, with the characters behind every token.

Paper: §4.3.
"""

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

    def __init__(self, file: Path, *, eos: str) -> None:
        self.file = file
        self.sha256 = sha256_file(file)
        try:
            self._tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises bare Exception
            raise CorruptFile(
                f"{file} is not a tokenizer.json: {error}\nTake it again from its source."
            ) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.eos = eos
        eos_id = self._tokenizer.token_to_id(eos)
        if eos_id is None:
            raise UsageError(
                f"{file} has no token {eos!r}.\nSet records.tokenizer.eos to its end-of-text token."
            )
        self.eos_id: int = eos_id

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

    def decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=False)


def load_tokenizer(config: TokenizerConfig) -> StudentTokenizer:
    """The tokenizer a config names; another file than the one it is bound to is refused."""
    file = _find(config)
    tokenizer = StudentTokenizer(file, eos=config.eos)
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
