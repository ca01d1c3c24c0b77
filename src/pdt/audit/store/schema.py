"""The tables. A vote is the truth; `Ticket.answer` repeats the last one, so that the next ticket is
found at once, and closing compares the two."""

from sqlalchemy import Double, ForeignKey, Index, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    pass


class AuditRow(Base):
    """The one audit of this database."""

    __tablename__ = "audit"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    plan: Mapped[str] = mapped_column(Text)
    training: Mapped[str] = mapped_column(Text)
    key: Mapped[str] = mapped_column(Text)
    """Hexadecimal; secret until the audit closes."""
    seal: Mapped[str] = mapped_column(Text)
    opened_at: Mapped[str] = mapped_column(Text)
    closed_at: Mapped[str | None] = mapped_column(Text)


class TextRow(Base):
    """What one lane wrote under one condition."""

    __tablename__ = "texts"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    condition: Mapped[str] = mapped_column(Text)
    record_id: Mapped[str] = mapped_column(Text)
    lane: Mapped[int]
    paragraphs: Mapped[str] = mapped_column(Text)
    """JSON."""


class ItemRow(Base):
    """One decision of the unblinded queue."""

    __tablename__ = "items"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    text: Mapped[int] = mapped_column(ForeignKey("texts.number"))
    fact_id: Mapped[str] = mapped_column(Text)
    claim: Mapped[str] = mapped_column(Text)
    words: Mapped[str] = mapped_column(Text)
    weight: Mapped[float] = mapped_column(Double)
    checked: Mapped[bool]
    """Adjudicated even where two people agree."""
    place: Mapped[float] = mapped_column(Double)
    """In the adjudicators' order."""


class PersonRow(Base):
    """An account; without a passphrase until its invitation is taken up."""

    __tablename__ = "people"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(Text, unique=True)
    roles: Mapped[str] = mapped_column(Text)
    """Separated by spaces."""
    seat: Mapped[int | None]
    passphrase: Mapped[str | None] = mapped_column(Text)
    """salt$hash."""
    invited_at: Mapped[str] = mapped_column(Text)
    left_at: Mapped[str | None] = mapped_column(Text)


class InvitationRow(Base):
    """A link that makes an account usable, once."""

    __tablename__ = "invitations"

    digest: Mapped[str] = mapped_column(Text, primary_key=True)
    """Of the token; the token itself is only in the link."""
    person: Mapped[int] = mapped_column(ForeignKey("people.id"))
    ends_at: Mapped[str] = mapped_column(Text)
    used_at: Mapped[str | None] = mapped_column(Text)


class SessionRow(Base):
    """A browser in which somebody has signed in."""

    __tablename__ = "sessions"

    digest: Mapped[str] = mapped_column(Text, primary_key=True)
    person: Mapped[int] = mapped_column(ForeignKey("people.id"))
    form_token: Mapped[str] = mapped_column(Text)
    """What every form of this session carries."""
    ends_at: Mapped[str] = mapped_column(Text)


class TicketRow(Base):
    """One showing: an item to a seat, an example to a person, a dispute to an adjudicator."""

    __tablename__ = "tickets"

    id: Mapped[str] = mapped_column(Text, primary_key=True)
    purpose: Mapped[str] = mapped_column(Text)
    item: Mapped[int]
    """Of the queue, or of the training examples."""
    seat: Mapped[int | None]
    person: Mapped[int | None] = mapped_column(ForeignKey("people.id"))
    round: Mapped[int]
    """Of the training."""
    position: Mapped[int]
    shown_at: Mapped[str | None] = mapped_column(Text)
    answer: Mapped[str | None] = mapped_column(Text)
    showing: Mapped[int]
    """How many votes it has had."""

    __table_args__ = (
        Index("tickets_of_seat", "seat", "position"),
        Index("tickets_of_item", "item", "purpose"),
        Index("tickets_of_person", "person", "purpose"),
    )


class VoteRow(Base):
    """An answer, or its withdrawal; each seals the one before it."""

    __tablename__ = "votes"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    ticket: Mapped[str] = mapped_column(Text, ForeignKey("tickets.id"))
    person: Mapped[int] = mapped_column(ForeignKey("people.id"))
    purpose: Mapped[str] = mapped_column(Text)
    item: Mapped[int]
    showing: Mapped[int]
    answer: Mapped[str | None] = mapped_column(Text)
    sentence: Mapped[int | None]
    remark: Mapped[str] = mapped_column(Text)
    seconds: Mapped[float | None] = mapped_column(Double)
    at: Mapped[str] = mapped_column(Text)
    source: Mapped[str] = mapped_column(Text)
    previous: Mapped[str] = mapped_column(Text, unique=True)
    """A link has one successor: two writers cannot both add to it."""
    digest: Mapped[str] = mapped_column(Text)

    __table_args__ = (
        UniqueConstraint("ticket", "showing", name="one_vote_a_showing"),
        Index("votes_of_person", "person", "number"),
    )
