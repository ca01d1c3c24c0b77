"""`pdt trunk`: look at a pretrained decoder before splitting it."""

from typing import Annotated

import typer
import yaml

from pdt.cli.options import AsJson, Revision

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
