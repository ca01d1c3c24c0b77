"""The tokenizer that lies with a trunk: a `tokenizer.json`, or the tables inside a GGUF file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from pdt.errors import TrunkRefused, UsageError
from pdt.provenance import read_json_object
from pdt.tokenizer import parse_tokenizer, read_tokenizer

TOKENIZER = "tokenizer.json"


@dataclass(frozen=True)
class TrunkTokenizer:
    """A trunk's own tokenizer, how it ends a turn, and how it lays out a conversation."""

    tokenizer: Tokenizer
    eos: str | None
    chat_template: str | None
    special: tuple[tuple[str, str], ...] = ()
    """Names such as `bos_token` that a chat template may use."""
    text: str | None = None
    """The file it was read from; None when it was built from a GGUF's tables."""

    def prompt_format(self) -> str:
        """The student's prompt form: source and request as one user turn of the trunk."""
        content = "{source}\n\n{request}"
        if self.chat_template is None:
            return content + "\n\n"
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        def refuse(message: str) -> None:
            raise UsageError(f"The trunk's chat template refuses a single user turn: {message}.")

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = refuse
        return environment.from_string(self.chat_template).render(
            messages=[{"role": "user", "content": content}],
            add_generation_prompt=True,
            **dict(self.special),
        )


def tokenizer_from_hf(directory: Path) -> TrunkTokenizer | None:
    """`tokenizer.json` beside Hugging Face weights, with what its neighbours say of it."""
    if not (directory / TOKENIZER).is_file():
        return None
    text = read_tokenizer(directory / TOKENIZER)
    tokenizer = parse_tokenizer(text, directory / TOKENIZER)
    config = _optional(directory / "tokenizer_config.json")
    template = config.get("chat_template")
    if (directory / "chat_template.jinja").is_file():
        template = (directory / "chat_template.jinja").read_text(encoding="utf-8")
    named = {
        name: value["content"] if isinstance(value, Mapping) else value
        for name in ("bos_token", "eos_token", "pad_token")
        if (value := config.get(name)) is not None
    }
    eos = named.get("eos_token")
    if eos is None and isinstance(
        end := _optional(directory / "config.json").get("eos_token_id"), int
    ):
        eos = tokenizer.id_to_token(end)
    chat = template if isinstance(template, str) else None
    return TrunkTokenizer(tokenizer, eos, chat, tuple(named.items()), text)


_QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CONTROL = 3
"""GGUF's type of a token that is markup and not text."""


def tokenizer_from_gguf(fields: Mapping[str, Any], where: str) -> TrunkTokenizer:
    """Byte-level BPE from a GGUF's own tables, for the splits of the supported families."""
    kind, split = fields.get("tokenizer.ggml.model"), fields.get("tokenizer.ggml.pre")
    if kind != "gpt2" or split not in ("smollm", "qwen2"):
        raise TrunkRefused(
            f"{where} has a tokenizer of kind {kind!r} with split {split!r}, "
            "which pdt cannot rebuild.\nUse the Hugging Face directory, which has tokenizer.json."
        )
    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    if split == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
        splitter: pre_tokenizers.PreTokenizer = pre_tokenizers.Split(
            Regex(_QWEN_SPLIT), behavior="isolated"
        )
        bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    else:
        splitter = pre_tokenizers.Digits(individual_digits=True)
        bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([splitter, bytes_only])
    tokenizer.decoder = decoders.ByteLevel()
    kinds = fields.get("tokenizer.ggml.token_type") or []
    tokenizer.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, kind in zip(tokens, kinds, strict=False)
            if kind == _CONTROL
        ]
    )
    ids = {
        name: fields.get(f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos", "padding")
    }
    named = {f"{name}_token": tokens[i] for name, i in ids.items() if i is not None}
    template = fields.get("tokenizer.chat_template")
    return TrunkTokenizer(tokenizer, named.get("eos_token"), template, tuple(named.items()))


def _optional(path: Path) -> dict[str, Any]:
    return read_json_object(path) if path.is_file() else {}
