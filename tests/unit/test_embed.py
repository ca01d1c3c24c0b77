"""Encoders behind one interface, and the fixed projection."""

from pathlib import Path

import numpy as np
import pytest

from pdt.config import load_config
from pdt.errors import BindingMismatch, UsageError
from pdt.records.embed import (
    HashedEncoder,
    MiniLMEncoder,
    Projection,
    SentenceTransformerEncoder,
    load_encoder,
    node_text,
)
from pdt.terms import NodeText
from tests.support.record_samples import document
from tests.support.weights import MINILM, needs_minilm


def test_the_hashed_encoder_is_the_same_everywhere() -> None:
    row = HashedEncoder(8, "hashed-ngrams").encode(["The walls held."])[0]
    assert np.allclose(row * np.sqrt(5), [0, 0, 0, -1, 0, 0, 0, 2], atol=1e-6)


def test_outlines_of_different_things_are_far_apart() -> None:
    """Function words are most of a short outline; counted, they made all outlines alike."""
    encoder = HashedEncoder(1024, "hashed-ngrams")
    scout, haul, of_it = encoder.encode(["Tell of the scout.", "Tell of the haul.", "Of it."])
    assert scout @ haul < 0.4
    assert np.linalg.norm(of_it) == pytest.approx(1)


def test_texts_that_share_words_are_nearer() -> None:
    rows = HashedEncoder(256, "hashed-ngrams").encode(
        ["The walls held for nine weeks.", "The walls held for six weeks.", "Salt was dear."]
    )
    assert rows[0] @ rows[1] > 0.5 > abs(rows[0] @ rows[2])


def test_an_empty_batch_and_an_empty_text_are_fine() -> None:
    encoder = HashedEncoder(16, "hashed-ngrams")
    assert encoder.encode([]).shape == (0, 16)
    assert (encoder.encode(["…"]) == 0).all()


@pytest.mark.paper("§4.3")
def test_the_projection_is_fixed_by_its_seed() -> None:
    first, again, other = (
        Projection(seed, planner_width=512, encoder_width=1024) for seed in (1729, 1729, 1730)
    )
    assert first.sha256 == again.sha256 != other.sha256
    assert first.sha256 == "f29bba28beeb9383441b2c86569024fef8857212c34cee46ee8793a00dff7fc6"


@pytest.mark.paper("§4.3")
def test_the_projection_keeps_lengths_and_angles() -> None:
    draw = np.random.default_rng(0)
    rows = draw.standard_normal((40, 1024)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[1] = 0.9 * rows[0] + np.sqrt(1 - 0.81) * rows[1]
    mapped = Projection(1729, planner_width=512, encoder_width=1024)(rows)
    assert np.abs(np.linalg.norm(mapped, axis=1) - 1).max() < 0.2
    assert abs(float(mapped[0] @ mapped[1]) - float(rows[0] @ rows[1])) < 0.15


def test_a_nodes_text_says_what_it_owns_and_may_mention() -> None:
    made = document()
    facts = {fact.id: fact for fact in made.inventory.facts}
    text = node_text(made.answer.plans[1].nodes[1], facts, NodeText.FULL)
    assert text.startswith("Explain part 2 of the end Owns: A treaty was signed")
    assert text.endswith("May mention: The walls held for nine weeks.")
    assert "Grey Oath" not in text
    alone = node_text(made.answer.plans[1].nodes[1], facts, NodeText.OBJECTIVE)
    assert alone == made.answer.plans[1].nodes[1].objective


def test_missing_weights_say_how_to_get_them(tmp_path: Path) -> None:
    config = load_config(
        "tiny", overrides=["records.encoder.kind=minilm", f"records.encoder.name={tmp_path}"]
    )
    with pytest.raises(UsageError, match="make encoder"):
        load_encoder(config)


def test_bge_without_its_library_or_network_says_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"records\.encoder"):
        SentenceTransformerEncoder("/nowhere/bge-large-en-v1.5", None)


def test_a_hub_out_of_reach_is_asked_once_and_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("huggingface_hub.hf_api.api.endpoint", "http://127.0.0.1:9")
    with pytest.raises(UsageError, match=r"cannot be loaded: .*refused"):
        SentenceTransformerEncoder("nobody/no-such-model", "0" * 40)
    assert "Retrying" not in caplog.text


@needs_minilm
def test_minilm_knows_meaning() -> None:
    encoder = MiniLMEncoder(MINILM, None)
    rows = encoder.encode(
        ["The city was besieged.", "An army surrounded the town.", "Bread costs two coins."]
    )
    assert rows.shape == (3, 384)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.2
    again = encoder.encode(["The city was besieged."])
    assert np.allclose(again[0], rows[0], atol=1e-5), "padding does not leak into the mean"


@needs_minilm
def test_other_weights_than_the_config_names_are_refused() -> None:
    with pytest.raises(BindingMismatch, match="not the encoder"):
        MiniLMEncoder(MINILM, "00" * 32)


@needs_minilm
def test_an_encoder_of_another_width_is_refused() -> None:
    overrides = ["records.encoder.kind=minilm", f"records.encoder.name={MINILM}"]
    with pytest.raises(UsageError, match=r"Set heads\.fact_width=384"):
        load_encoder(load_config("tiny", overrides=overrides))


@needs_minilm
@pytest.mark.paper("§4.3")
def test_the_canonical_loader_gives_the_same_vectors_as_our_own() -> None:
    """BGE is out of reach here; its loader is held against MiniLM, whose mean we take ourselves."""
    texts = ["The city was besieged.", "An army surrounded the town for nine weeks in spring."]
    canonical = SentenceTransformerEncoder(str(MINILM), None)
    own = MiniLMEncoder(MINILM, None)
    assert canonical.width == own.width
    assert canonical.identity == own.identity
    assert np.allclose(canonical.encode(texts), own.encode(texts), atol=1e-6)
