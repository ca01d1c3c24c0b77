"""The first tables, and the rule that votes are only ever added."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("plan", sa.Text, nullable=False),
        sa.Column("training", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("seal", sa.Text, nullable=False),
        sa.Column("opened_at", sa.Text, nullable=False),
        sa.Column("closed_at", sa.Text),
    )
    op.create_table(
        "texts",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("condition", sa.Text, nullable=False),
        sa.Column("record_id", sa.Text, nullable=False),
        sa.Column("lane", sa.Integer, nullable=False),
        sa.Column("paragraphs", sa.Text, nullable=False),
    )
    op.create_table(
        "items",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("text", sa.Integer, sa.ForeignKey("texts.number"), nullable=False),
        sa.Column("fact_id", sa.Text, nullable=False),
        sa.Column("claim", sa.Text, nullable=False),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("weight", sa.Double, nullable=False),
        sa.Column("checked", sa.Boolean, nullable=False),
        sa.Column("place", sa.Double, nullable=False),
    )
    op.create_table(
        "people",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("roles", sa.Text, nullable=False),
        sa.Column("seat", sa.Integer),
        sa.Column("passphrase", sa.Text),
        sa.Column("invited_at", sa.Text, nullable=False),
        sa.Column("left_at", sa.Text),
    )
    op.create_table(
        "invitations",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("person", sa.Integer, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("ends_at", sa.Text, nullable=False),
        sa.Column("used_at", sa.Text),
    )
    op.create_table(
        "sessions",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("person", sa.Integer, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("form_token", sa.Text, nullable=False),
        sa.Column("ends_at", sa.Text, nullable=False),
    )
    op.create_table(
        "tickets",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("item", sa.Integer, nullable=False),
        sa.Column("seat", sa.Integer),
        sa.Column("person", sa.Integer, sa.ForeignKey("people.id")),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("shown_at", sa.Text),
        sa.Column("answer", sa.Text),
        sa.Column("showing", sa.Integer, nullable=False),
    )
    op.create_index("tickets_of_seat", "tickets", ["seat", "position"])
    op.create_index("tickets_of_item", "tickets", ["item", "purpose"])
    op.create_index("tickets_of_person", "tickets", ["person", "purpose"])
    op.create_table(
        "votes",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("ticket", sa.Text, sa.ForeignKey("tickets.id"), nullable=False),
        sa.Column("person", sa.Integer, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("item", sa.Integer, nullable=False),
        sa.Column("showing", sa.Integer, nullable=False),
        sa.Column("answer", sa.Text),
        sa.Column("sentence", sa.Integer),
        sa.Column("remark", sa.Text, nullable=False),
        sa.Column("seconds", sa.Double),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("previous", sa.Text, nullable=False, unique=True),
        sa.Column("digest", sa.Text, nullable=False),
        sa.UniqueConstraint("ticket", "showing", name="one_vote_a_showing"),
    )
    op.create_index("votes_of_person", "votes", ["person", "number"])
    for statement in _only_added(op.get_bind().dialect.name):
        op.execute(statement)


def _only_added(dialect: str) -> list[str]:
    """Triggers that refuse to change or remove a vote, whoever asks."""
    message = "votes are only ever added"
    if dialect == "sqlite":
        return [
            f"CREATE TRIGGER votes_{verb.lower()} BEFORE {verb} ON votes "
            f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
            for verb in ("UPDATE", "DELETE")
        ]
    return [
        "CREATE FUNCTION votes_only_added() RETURNS trigger LANGUAGE plpgsql AS $$ "
        f"BEGIN RAISE EXCEPTION '{message}'; END $$",
        "CREATE TRIGGER votes_changed BEFORE UPDATE OR DELETE ON votes "
        "FOR EACH ROW EXECUTE FUNCTION votes_only_added()",
        "CREATE TRIGGER votes_emptied BEFORE TRUNCATE ON votes "
        "FOR EACH STATEMENT EXECUTE FUNCTION votes_only_added()",
    ]
