"""A plan node of a model that points is told by the sentences of the source that it points at."""

import pytest
import torch

from pdt.config import load_config
from pdt.generation.loop import start
from pdt.generation.settings import GenerationSettings
from pdt.model.planner import PlanSet
from pdt.serve import plan_passages
from pdt.serve.plan_passages import nearest_sentences
from tests.conftest import open_model
from tests.support.generations import byte_tokenizer

SOURCE = "# The siege\n\nThe town fell. Mara held it.\n\nIt rained for nine days."
REQUEST = "Write of it."


@pytest.mark.paper("§3.2", "§4.3")
@pytest.mark.parametrize("form", ["opening", "passage", "before"])
def test_a_node_that_owns_a_sentence_is_told_by_it(form: str) -> None:
    overrides = [f"trunk.shape.vocabulary={byte_tokenizer().vocabulary}", f"planner.targets={form}"]
    model = open_model(load_config("tiny", overrides=[*overrides, "records.tokenizer.eos=<end>"]))
    tokenizer = byte_tokenizer()
    prompt = tokenizer.prompt(SOURCE, REQUEST, model.config.records.prompt_format)
    generation = start(model, [prompt], GenerationSettings(max_tokens=1), tokenizer=tokenizer)
    list(generation.events())
    texts, passages_FP = plan_passages._passages(generation, tokenizer, SOURCE, REQUEST)
    assert texts == ["The town fell.", "Mara held it.", "It rained for nine days."]
    plans = generation.plans_in_force
    assert plans is not None
    nodes_BKNP, valid_BKN = torch.zeros_like(plans.nodes_BKNP), torch.zeros_like(plans.valid_BKN)
    for lane, sentence in enumerate([2, 0, 1]):
        nodes_BKNP[0, lane, 1] = 5 * passages_FP[sentence]
        valid_BKN[0, lane, 1] = True
    generation.plans_in_force = PlanSet(nodes_BKNP, valid_BKN, plans.scores_BK)
    told = nearest_sentences(generation, tokenizer, SOURCE, REQUEST)
    assert [[node["node"] for node in lane] for lane in told] == [[1], [1], [1]]
    first = [lane[0]["sentences"][0] for lane in told]  # type: ignore[index]
    assert [one["text"] for one in first] == [texts[2], texts[0], texts[1]]
    assert all(one["cosine"] == pytest.approx(1, abs=0.01) for one in first)
