"""`python -m pdt` is the `pdt` command."""

from pdt.cli import main

main()
