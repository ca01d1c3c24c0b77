"""Times as they are stored: UTC, to the millisecond, as text that sorts."""

from datetime import UTC, datetime, timedelta


def now() -> datetime:
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")


def in_days(days: float) -> str:
    return stamp(now() + timedelta(days=days))
