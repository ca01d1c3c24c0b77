"""`pdt curated`: the four curated records, as documents that the compiler takes."""

from pathlib import Path
from typing import Annotated

import typer

from pdt.provenance import new_directory, write_manifest

app = typer.Typer(
    help="Four long-form records to inspect the contract: three invented, one of a real article.",
    no_args_is_help=True,
)


@app.command("list")
def list_records() -> None:
    """Name each record with its event, its facts and its dependencies."""
    from pdt.records.curated import curated_names, read_curated

    for name in curated_names():
        taught = read_curated(name).taught
        facts, links = len(taught.inventory.facts), len(taught.answer.dependencies)
        print(f"{name:<24} {taught.article.title}: {facts} facts, {links} dependencies")


@app.command()
def write(
    out: Annotated[Path, typer.Option(help="A new directory.")],
    bundles: Annotated[bool, typer.Option(help="Also write each raw source bundle.")] = False,
) -> None:
    """Write the records as taught documents, for `pdt record compile --preset canonical`."""
    from pdt.records.curated import curated_names, read_curated
    from pdt.sources.bundle import write_bundle

    names = curated_names()
    with new_directory(out) as work:
        with (work / "documents.jsonl").open("w", encoding="utf-8") as file:
            for name in names:
                record = read_curated(name)
                file.write(record.taught.model_dump_json() + "\n")
                if bundles:
                    write_bundle(work / "bundles", record.source.bundle, record.source.raw)
        write_manifest(work, made_by="pdt curated write", config={"records": names})
    print(f"{len(names)} documents in {out / 'documents.jsonl'}")
