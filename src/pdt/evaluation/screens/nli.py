"""The NLI screen: a pinned cross-encoder asks whether some sentence of a lane entails a claim.

A lane holds a claim when the most entailing of its sentences reaches the frozen threshold. It is a
screen only: final rates need adjudicated judgments.

Paper: §7.2.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pdt.errors import BindingMismatch, UsageError
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.judgments import LaneFacts
from pdt.evaluation.measures.longform import sentences_of
from pdt.evaluation.screens.calibration import Calibration, read_calibration
from pdt.evaluation.screens.screen import ScreenChoice
from pdt.provenance import sha256_file

CANONICAL_NAME = "cross-encoder/nli-deberta-v3-base"
CANONICAL_REVISION = "6c749ce3425cd33b46d187e45b92bbf96ee12ec7"
WEIGHTS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
BATCH = 64
WINDOW, STEP = 80, 40
"""Words. A lane that never ends a sentence is read in overlapping windows, so that none of it is
cut off where the encoder ends."""

Pair = tuple[str, str]
"""A premise and a hypothesis."""


def quiet_transformers() -> None:
    """No bars and no remarks about weights: a refusal of ours says what is wrong."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


class CrossEncoder(Protocol):
    """Anything that scores entailment."""

    identity: str

    def entailment(self, pairs: Sequence[Pair]) -> list[float]:
        """P(the first entails the second) of each pair."""
        ...


class TransformersCrossEncoder:
    """A classifier with a label `entailment`: a local directory, or the hub at a commit."""

    def __init__(self, source: str, revision: str | None = None) -> None:
        try:
            import torch
            from transformers import (
                AutoModelForSequenceClassification,
                AutoTokenizer,
                PreTrainedTokenizerFast,
            )
        except ImportError as error:
            raise UsageError(
                "The NLI screen needs transformers.\nRun `pip install 'pdt[encoders]'`."
            ) from error
        quiet_transformers()
        self._torch = torch
        directory = Path(source)
        self._tokenizer: Any
        if (directory / WEIGHTS).is_file():
            files = (WEIGHTS, TOKENIZER, CONFIG)
            if absent := [name for name in files if not (directory / name).is_file()]:
                raise UsageError(
                    f"{source} holds no {absent[0]}, which a cross-encoder needs.\n"
                    "Take the directory again; `pdt eval nli-train` makes one."
                )
            digest = hashlib.sha256("".join(sha256_file(directory / f) for f in files).encode())
            self.identity = f"{directory.name} sha256 {digest.hexdigest()}"
            self._model: Any = AutoModelForSequenceClassification.from_pretrained(directory)
            self._tokenizer = PreTrainedTokenizerFast(
                tokenizer_file=str(directory / TOKENIZER), pad_token="[PAD]", model_max_length=256
            )
        elif revision is not None:
            self.identity = f"{source}@{revision}"
            try:
                self._model = AutoModelForSequenceClassification.from_pretrained(
                    source, revision=revision
                )
                self._tokenizer = AutoTokenizer.from_pretrained(source, revision=revision)
            except OSError as error:
                raise UsageError(
                    f"{source} at {revision} cannot be had: {error}\n"
                    "Give --nli the directory of a cross-encoder; `pdt eval nli-train` makes one."
                ) from error
        else:
            raise UsageError(
                f"{source} holds no {WEIGHTS}, and a hub model needs its commit.\n"
                "Give a directory made by `pdt eval nli-train`, or `canonical`."
            )
        self._model.eval()
        labels = {name.casefold(): index for index, name in self._model.config.id2label.items()}
        if "entailment" not in labels:
            raise UsageError(
                f"{source} has the labels {', '.join(labels)}: none is `entailment`.\n"
                "Give a three-way NLI cross-encoder."
            )
        self._entailment = int(labels["entailment"])

    def entailment(self, pairs: Sequence[Pair]) -> list[float]:
        """Short pairs go with short ones, so that little is spent on padding."""
        torch = self._torch
        scores = [0.0] * len(pairs)
        order = sorted(range(len(pairs)), key=lambda n: len(pairs[n][0]) + len(pairs[n][1]))
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            batch = self._tokenizer(
                [pairs[n][0] for n in chosen],
                [pairs[n][1] for n in chosen],
                padding=True,
                truncation=True,
                return_tensors="pt",
            )
            with torch.inference_mode():
                p = self._model(**batch).logits.softmax(-1)[:, self._entailment]
            for n, score in zip(chosen, p.tolist(), strict=True):
                scores[n] = score
        return scores


def load_cross_encoder(source: str) -> TransformersCrossEncoder:
    """`canonical` for the pinned hub model, else a directory."""
    if source == "canonical":
        return TransformersCrossEncoder(CANONICAL_NAME, CANONICAL_REVISION)
    return TransformersCrossEncoder(source)


def evidence_scores(
    encoder: CrossEncoder, claims: Sequence[str], lanes: Sequence[str]
) -> list[list[float]]:
    """By claim and lane: the highest entailment over the lane's sentences, 0 for an empty lane."""
    sentences = [list(_passages(text)) for text in lanes]
    pairs = [(s, claim) for claim in claims for lane in sentences for s in lane]
    wanted = list(dict.fromkeys(pairs))
    found = dict(zip(wanted, encoder.entailment(wanted), strict=True))
    return [
        [max((found[s, claim] for s in lane), default=0.0) for lane in sentences]
        for claim in claims
    ]


def _passages(text: str) -> Iterator[str]:
    """Sentences, the overlong ones in windows."""
    for sentence in sentences_of(text):
        words = sentence.split()
        for start in range(0, max(1, len(words) - WINDOW + STEP), STEP):
            yield " ".join(words[start : start + WINDOW])


class NliScreen:
    """A cross-encoder with its frozen threshold."""

    name: ClassVar[str] = "nli"
    calibrated: ClassVar[bool] = True

    def __init__(self, encoder: CrossEncoder, calibration: Calibration) -> None:
        if calibration.encoder != encoder.identity:
            raise BindingMismatch(
                "The threshold was calibrated for another cross-encoder.",
                [("encoder", calibration.encoder, encoder.identity)],
                "Scores of two models do not compare. Calibrate this one, once.",
                sides=("calibration", "screen"),
            )
        self._encoder = encoder
        self.calibration: Calibration = calibration

    @classmethod
    def opened(cls, choice: ScreenChoice) -> "NliScreen | None":
        """Beside the chosen screen too, where its model and its frozen threshold are given."""
        if choice.encoder is None and choice.calibration is None and choice.name != cls.name:
            return None
        if choice.encoder is None or choice.calibration is None:
            raise UsageError(
                "The NLI screen needs both --nli and --calibration.\n"
                "`pdt eval calibrate` makes the calibration from teacher prose."
            )
        frozen = read_calibration(choice.calibration)
        return cls(load_cross_encoder(choice.encoder), frozen)

    def judge(self, document: HeldOutDocument, lanes: Sequence[str]) -> LaneFacts:
        """A text screen cannot tell a statement from a mention; both are `there`."""
        threshold = self.calibration.threshold
        claims = [fact.statement for fact in document.facts]
        negatives = [fact.hard_negative for fact in document.facts]
        scores = evidence_scores(self._encoder, [*claims, *negatives], lanes)
        there = [[score >= threshold for score in row] for row in scores]
        held, false = there[: len(claims)], there[len(claims) :]
        return LaneFacts.of_facts(held, held, false)
