"""What a run is about, on one line: taken from its stored spec, short, and without secrets."""

from collections.abc import Mapping

from muster.app.kinds import kind_of
from muster.domain.run import Run
from muster.text.plain import plain_words
from muster.text.secrets.redaction import redact
from muster.text.words import one_line

MAX_SUBJECT = 160  # characters of a subject
_READ = 2_000  # characters of a text that are looked at


def subject_of(run: Run) -> str | None:
    """Return who is asked what in a run; None for workloads of the user's own, whose specs may be anything."""
    if not isinstance(run.spec, Mapping):
        return None
    texts = (_text(part) for part in kind_of(run).subject(run.spec))
    return one_line(redact(": ".join(filter(None, texts))).text, MAX_SUBJECT) or None


def _text(value: object) -> str:
    """Return the first paragraph of a text, as plain words."""
    if not isinstance(value, str):
        return ""
    paragraphs = (plain_words(paragraph) for paragraph in value[:_READ].strip().split("\n\n"))
    return next(filter(None, paragraphs), "")
