"""§7.2: people judge what screens have screened, blinded, and their judgments are the final ones.

    queue      a verdict becomes items: one a condition, lane and claim
    blinding   opaque ids, an order for each seat, items that return
    store/     the database: tables, migrations, people, votes in a chain
    judging    what a person is shown next, and what becomes of an answer
    agreement  how far annotators agree, with intervals over documents
    closing    the sealed audit as a directory; adjudicated/ puts it beside the screens
    formats/   tasks and votes as Label Studio, CSV and JSON lines
    web/       the pages

Paper: §7.2.
"""
