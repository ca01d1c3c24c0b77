"""Damaged inputs by the thousand: only the project's own errors may come out, and none takes long.

    python -m tools.fuzz --count 5000                 every target, 5,000 cases each
    python -m tools.fuzz --target trace --start 42 --count 1     one case again

A case is drawn from a seed, its target and its number, so a failure can be made again alone.
`damage` breaks bytes and trees, `targets` says what is broken and who must refuse it, `run` counts.
"""
