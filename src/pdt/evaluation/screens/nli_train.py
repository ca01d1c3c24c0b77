"""Make an NLI cross-encoder where no hub can be reached: a small BERT fine-tuned on SNLI pairs.

Paper: §7.2 (the pinned cross-encoder).
"""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pdt.errors import ContractBroken, UsageError
from pdt.evaluation.screens.nli import quiet_transformers
from pdt.parse import NotParsed, parse_json
from pdt.provenance import new_directory, sha256_file, write_json, write_manifest

LABELS = ("contradiction", "entailment", "neutral")
LEARNING_RATE = 1e-4
BATCH = 32
Example = tuple[str, str, int]


def read_pairs(path: Path, limit: int | None = None) -> list[Example]:
    """Premise, hypothesis and label of SNLI's JSON lines; pairs without a gold label are left out.

    The file is ordered by picture; taking every nth line spreads a subset over all of it.
    """
    if not path.is_file():
        raise UsageError(f"{path} does not exist. Give SNLI's JSON lines (see docs/protocol.md).")
    pairs = list(_pairs(path))
    if not pairs:
        raise ContractBroken(
            f"{path} holds no labelled pair.", "Give SNLI's snli_1.0_train.jsonl or a part of it."
        )
    if limit is None or limit >= len(pairs):
        return pairs
    return [pairs[n * len(pairs) // limit] for n in range(limit)]


def _pairs(path: Path) -> Iterator[Example]:
    for number, line in enumerate(
        path.read_text(encoding="utf-8").removesuffix("\n").split("\n"), start=1
    ):
        try:
            row = parse_json(line)
            label, first, second = row["gold_label"], row["sentence1"], row["sentence2"]
        except (NotParsed, KeyError, TypeError) as error:
            raise ContractBroken(
                f"{path}:{number} is not a line of SNLI: {error}.", "Take the file again."
            ) from error
        if label in LABELS:
            yield first, second, LABELS.index(label)


def train_cross_encoder(
    data: Path,
    test: Path,
    encoder: Path,
    out: Path,
    *,
    pairs: int | None,
    test_pairs: int,
    seed: int,
    watch: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Fine-tune, measure on held-out pairs, and save a directory that the screen can load."""
    import torch
    from transformers import AutoConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    if not (encoder / "model.safetensors").is_file():
        raise UsageError(f"{encoder} holds no model.safetensors. Run `make encoder`.")
    quiet_transformers()
    torch.manual_seed(seed)
    examples, held_out = read_pairs(data, pairs), read_pairs(test, test_pairs)
    settings = AutoConfig.from_pretrained(
        encoder,
        num_labels=len(LABELS),
        id2label=dict(enumerate(LABELS)),
        label2id={name: n for n, name in enumerate(LABELS)},
    )
    model: Any = BertForSequenceClassification.from_pretrained(encoder, config=settings)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(encoder / "tokenizer.json"), pad_token="[PAD]", model_max_length=128
    )

    def logits(batch: list[Example]) -> Any:
        first, second, _ = zip(*batch, strict=True)
        return model(
            **tokenizer(
                list(first), list(second), padding=True, truncation=True, return_tensors="pt"
            )
        ).logits

    steps = len(examples) // BATCH
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / (0.1 * steps + 1), 1 - step / (steps + 1))
    )
    order = torch.randperm(len(examples), generator=torch.Generator().manual_seed(seed)).tolist()
    begun, mean = time.monotonic(), 1.1
    model.train()
    for step in range(steps):
        batch = [examples[n] for n in order[step * BATCH : (step + 1) * BATCH]]
        target = torch.tensor([label for _, _, label in batch])
        loss = torch.nn.functional.cross_entropy(logits(batch), target)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        mean += 0.05 * (loss.item() - mean)
        if step % 20 == 19:
            watch(f"step {step + 1} of {steps}  loss {mean:.3f}")
    model.eval()
    right = 0
    with torch.inference_mode():
        for start in range(0, len(held_out), BATCH):
            batch = held_out[start : start + BATCH]
            chosen = logits(batch).argmax(-1).tolist()
            right += sum(a == b for a, (_, _, b) in zip(chosen, batch, strict=True))
    summary = {
        "pairs": steps * BATCH,
        "test_pairs": len(held_out),
        "accuracy": right / len(held_out),
        "seconds": time.monotonic() - begun,
        "seed": seed,
    }
    with new_directory(out) as work:
        model.save_pretrained(work)
        shutil.copy(encoder / "tokenizer.json", work / "tokenizer.json")
        write_json(work / "training.json", summary)
        write_manifest(
            work,
            made_by="pdt eval nli-train",
            config=summary,
            inputs={
                "data": sha256_file(data),
                "test": sha256_file(test),
                "encoder": sha256_file(encoder / "model.safetensors"),
            },
        )
    return summary
