"""Records fit one model: the one whose lanes, planner and tokenizer they were compiled for.

Paper: §4.3.
"""

from pdt.config import PdtConfig
from pdt.errors import BindingMismatch
from pdt.records.batch import RecordShards
from pdt.tokenizer import StudentTokenizer


def check_fit(shards: RecordShards, config: PdtConfig, tokenizer: StudentTokenizer | None) -> None:
    """Refuse records whose labels or tokens were made for another model. Paper: §4.3."""
    of = shards.config
    rows = [
        ("lanes.count", of.lanes.count, config.lanes.count),
        ("lanes.block_tokens", of.lanes.block_tokens, config.lanes.block_tokens),
        ("planner.nodes", of.planner.nodes, config.planner.nodes),
        ("planner.width", of.planner.width, config.planner.width),
        ("heads.fact_width", of.heads.fact_width, config.heads.fact_width),
        ("records.encoder", _encoder(of), _encoder(config)),
        ("records.node_text", of.records.node_text, config.records.node_text),
        ("records.projection_seed", of.records.projection_seed, config.records.projection_seed),
        ("records.prompt_format", of.records.prompt_format, config.records.prompt_format),
    ]
    wrong = [row for row in rows if row[1] != row[2]]
    if wrong:
        raise BindingMismatch(
            f"{shards.directory} was compiled for another model.",
            wrong,
            "Compile the documents again with this configuration.",
            sides=("records", "model"),
        )
    if tokenizer is not None:
        shards.require_tokenizer(tokenizer.sha256)
    shards.require_vocabulary(config.trunk.shape.vocabulary)


def _encoder(config: PdtConfig) -> str:
    """Which encoder it is, wherever its weights lie."""
    encoder = config.records.encoder
    return f"{encoder.kind} {encoder.revision or encoder.name}"
