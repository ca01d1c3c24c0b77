"""`pdt config`: look at a configuration before using it."""

import typer
import yaml

from pdt.cli.options import AsJson, ConfigFile, Overrides, Preset, chosen
from pdt.config import preset_names

app = typer.Typer(help="Look at configurations.", no_args_is_help=True)


@app.command("show")
def show(
    preset: Preset = "canonical",
    config: ConfigFile = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Print the whole tree as it will be used."""
    tree = chosen(preset, config, overrides)
    text = yaml.safe_dump(tree.model_dump(mode="json"), sort_keys=False)
    print(tree.model_dump_json(indent=2) if as_json else text.rstrip())


@app.command("list")
def list_presets() -> None:
    """Print the names of the presets."""
    print("\n".join(preset_names()))
