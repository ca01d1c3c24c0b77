"""Text ↔ tokens, as the trunk was trained: a `tokenizer.json`, or the tables inside a GGUF file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from pdt.errors import TrunkRefused, UsageError
from pdt.provenance import read_json_object

TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
CHAT_TEMPLATE = "chat_template.jinja"


@dataclass(frozen=True)
class TextTokenizer:
    """A tokenizer, the tokens that end a section, and how a prompt is laid out."""

    tokenizer: Tokenizer
    eos_tokens: tuple[int, ...]
    chat_template: str | None = None
    special: tuple[tuple[str, str], ...] = ()
    """Names such as `bos_token` that a chat template may use."""

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, tokens: Sequence[int]) -> str:
        return self.tokenizer.decode(list(tokens), skip_special_tokens=True)

    def prompt(self, source: str, request: str) -> list[int]:
        """Source and request as one prompt: in the trunk's chat form when it has one."""
        content = f"{source.strip()}\n\n{request.strip()}"
        if self.chat_template is None:
            return self.encode(content + "\n\n")
        return self.encode(self._render([{"role": "user", "content": content}]))

    def files(self) -> dict[str, str]:
        """What a model directory stores."""
        config = {
            "eos_token_ids": list(self.eos_tokens),
            "chat_template": self.chat_template,
            "special": dict(self.special),
        }
        return {
            TOKENIZER: self.tokenizer.to_str(),
            TOKENIZER_CONFIG: json.dumps(config, indent=2, ensure_ascii=False) + "\n",
        }

    def _render(self, messages: list[dict[str, str]]) -> str:
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        def refuse(message: str) -> None:
            raise UsageError(f"The trunk's chat template refuses this prompt: {message}.")

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = refuse
        template = environment.from_string(self.chat_template or "")
        return template.render(messages=messages, add_generation_prompt=True, **dict(self.special))


def tokenizer_from_model(directory: Path) -> TextTokenizer | None:
    """The tokenizer a model directory was saved with."""
    if not (directory / TOKENIZER).is_file():
        return None
    config = read_json_object(directory / TOKENIZER_CONFIG)
    return TextTokenizer(
        _read(directory / TOKENIZER),
        tuple(config["eos_token_ids"]),
        config["chat_template"],
        tuple(config["special"].items()),
    )


def tokenizer_from_hf(directory: Path) -> TextTokenizer | None:
    """`tokenizer.json` beside Hugging Face weights, with what its neighbours say of it."""
    if not (directory / TOKENIZER).is_file():
        return None
    tokenizer = _read(directory / TOKENIZER)
    config = _optional(directory / TOKENIZER_CONFIG)
    template = config.get("chat_template")
    if (directory / CHAT_TEMPLATE).is_file():
        template = (directory / CHAT_TEMPLATE).read_text(encoding="utf-8")
    ends = _optional(directory / "generation_config.json").get("eos_token_id")
    if ends is None:
        ends = _optional(directory / "config.json").get("eos_token_id")
    ids = [ends] if isinstance(ends, int) else list(ends or ())
    named = {
        name: value["content"] if isinstance(value, Mapping) else value
        for name in ("bos_token", "eos_token", "pad_token")
        if (value := config.get(name)) is not None
    }
    if not ids and "eos_token" in named:
        ids = [tokenizer.token_to_id(named["eos_token"])]
    chat = template if isinstance(template, str) else None
    return TextTokenizer(tokenizer, tuple(ids), chat, tuple(named.items()))


_QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CONTROL = 3
"""GGUF's type of a token that is markup and not text."""


def tokenizer_from_gguf(fields: Mapping[str, Any], where: str) -> TextTokenizer:
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
    named = tuple((f"{n}_token", tokens[i]) for n, i in ids.items() if i is not None)
    ends = () if ids["eos"] is None else (int(ids["eos"]),)
    return TextTokenizer(tokenizer, ends, fields.get("tokenizer.chat_template"), named)


def _read(path: Path) -> Tokenizer:
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises a bare Exception for a broken file
        raise TrunkRefused(f"{path} is not a tokenizer: {error}.\nTake it again.") from error


def _optional(path: Path) -> dict[str, Any]:
    return read_json_object(path) if path.is_file() else {}
