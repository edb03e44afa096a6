"""Times as JSON."""

from datetime import UTC, datetime


def moment(at: float | None) -> str | None:
    """Return a time in UTC, as ISO 8601."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
