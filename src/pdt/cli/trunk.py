"""`pdt trunk`: look at a pretrained decoder before splitting it."""

import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml

from pdt.cli.options import AsJson, Revision
from pdt.errors import UsageError

app = typer.Typer(help="Look at pretrained decoders.", no_args_is_help=True)


@app.command("show")
def show(
    source: Annotated[str, typer.Argument(help="Hugging Face directory, GGUF file or hub id.")],
    revision: Revision = None,
    as_json: AsJson = False,
) -> None:
    """Check that the decoder can be split, and print its shape; else say why not."""
    from pdt.model.weights import open_weights

    shape = open_weights(source, revision).shape
    text = yaml.safe_dump(shape.model_dump(mode="json"), sort_keys=False)
    print(shape.model_dump_json(indent=2) if as_json else text.rstrip())
    print("This decoder can be split: `pdt model init`.", file=sys.stderr)


@app.command("tokenizer")
def tokenizer(
    source: Annotated[str, typer.Argument(help="Hugging Face directory, GGUF file or hub id.")],
    out: Annotated[Path, typer.Option(help="The tokenizer.json to write.")],
    revision: Revision = None,
) -> None:
    """Write the decoder's own tokenizer as a file, for records that are compiled for it."""
    from pdt.model.weights import open_weights
    from pdt.provenance import atomic_path
    from pdt.tokenizer import StudentTokenizer

    own = open_weights(source, revision).tokenizer()
    if own is None or own.eos is None:
        raise UsageError(f"{source} has no tokenizer that ends a text.\nGive another source.")
    student = (
        StudentTokenizer.in_memory(own.tokenizer, eos=own.eos)
        if own.text is None
        else StudentTokenizer(own.text, eos=own.eos, where=source)
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(out) as partial:
        partial.write_text(student.as_json(), encoding="utf-8")
    print(f"{student.vocabulary} pieces in {out}, sha256 {student.sha256}")
