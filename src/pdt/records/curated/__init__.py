"""Four curated long-form records, to inspect the whole contract (not a training corpus).

A record is a folder of three files a person can read and edit: `source.md`, `facts.txt` (Stage A)
and `answer.md` (Stage B). Quotes are marked where they stand, `[f3|these words]`; their offsets are
counted when the record is read, never written by hand. Three events are invented. The fourth source
is a real Wikimedia revision, word for word: `revision.json` says which, and on what terms it is
carried; its `reviews.jsonl` is the log of its inspection.

Paper: §4.3 (four separately curated examples), §7.4.
"""

from pdt.records.curated.read import CuratedRecord, curated_names, read_curated

__all__ = ["CuratedRecord", "curated_names", "read_curated"]
