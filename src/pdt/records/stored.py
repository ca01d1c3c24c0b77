"""Taught documents from either place they lie in: document files, or a compiled directory."""

from collections.abc import Iterator
from pathlib import Path

from pdt.records.corpus import is_corpus
from pdt.records.inputs import read_documents
from pdt.records.shards import Shard
from pdt.records.verify import corpus_shards
from pdt.teacher.document import TaughtDocument


def stored_documents(source: Path) -> Iterator[TaughtDocument]:
    """Every document of a .jsonl file, a folder of them, or a compiled directory, in order."""
    if is_corpus(source):
        for name in corpus_shards(source):
            for record in Shard(source / name).records():
                yield TaughtDocument.model_validate_json(record.document)
    else:
        for _, document in read_documents([source]):
            yield document
