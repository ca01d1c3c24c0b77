"""Write docs/data-contract.md from the field docs of the contracts."""

from pathlib import Path

from pdt.records.contracts import contract_page

if __name__ == "__main__":
    target = Path(__file__).parents[1] / "docs" / "data-contract.md"
    target.parent.mkdir(exist_ok=True)
    target.write_text(contract_page(), encoding="utf-8")
