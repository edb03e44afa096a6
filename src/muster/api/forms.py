"""What the descriptions of routes say to those who make a form from the body of a request: how the work is called.

What a form needs of each field stands in the schema of the body, and the words of the work in its kind.
"""

from typing import Any

from muster.app.kinds import KINDS, AppKind
from muster.domain.canonical import Json

FORM = "x-form"


def form_of(known: AppKind) -> dict[str, Json]:
    """Return what the description of a route says that starts work: its name, what it is about, the button, places."""
    kind, page = known.kind, known.page
    words = {
        "kind": kind.word.partition(" ")[0],
        "name": kind.title,
        "about": kind.about,
        "label": page.button or f"Start the {kind.word}",
        "place": page.place,
    }
    return {FORM: words | {"order": KINDS.index(known) if known in KINDS else len(KINDS)}}


def field_label(name: str, _field: Any = None) -> str:
    """Return what a form calls a field: `budget_usd` is "Budget in dollars"."""
    for unit, words in (("_usd", " in dollars"), ("_secs", " in seconds")):
        if name.endswith(unit):
            name = name.removesuffix(unit) + words
    return name[:1].upper() + name[1:].replace("_", " ")
