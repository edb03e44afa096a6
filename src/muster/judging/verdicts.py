"""The form of a verdict: each item once, with evidence that really stands in what is judged. Pure.

A single judge and the members of a council that judges are held to the same form, in the same words.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from muster.domain.canonical import Json

_QUOTES = "\"'“”‘’«»"
_SHOWN = 60  # characters of an id that the judge made up


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictForm:
    """What the items of a verdict must be: these ids, each once, and evidence from one of these texts."""

    ids: tuple[str, ...]
    texts: tuple[str, ...]


def ids_flaw(given: Iterable[str], form: VerdictForm) -> str:
    """Return which items are missing, made up, or there twice."""
    counted = Counter(given)
    problems = (
        ("these items of the rubric are missing", [id_ for id_ in form.ids if id_ not in counted]),
        ("there are no such items in the rubric", [repr(id_[:_SHOWN]) for id_ in counted if id_ not in form.ids]),
        ("these items are there more than once", [id_ for id_ in form.ids if counted[id_] > 1]),
    )
    return "; ".join(f"{problem}: {', '.join(ids)}" for problem, ids in problems if ids)


def quotes_flaw(items: Sequence[Mapping[str, Json]], form: VerdictForm) -> str:
    """Return whose evidence does not stand in any text; items without evidence claim nothing."""
    texts = plain_texts(form.texts)
    loose = [str(item["id"]) for item in items if stands(str(item["evidence"]).strip(), texts) is False]
    if not loose:
        return ""
    return (
        f"the evidence for these items does not stand in any answer: {', '.join(loose)}. Copy it word by word from an "
        "answer of the agent's, without leaving anything out, or let it be empty."
    )


def stands(evidence: str, texts: Sequence[str]) -> bool | None:
    """Return whether a passage was really said; None without one. Judges like to put quotation marks around it."""
    if not evidence:
        return None
    passage = _plain(evidence)
    bare = passage.strip(_QUOTES).strip()
    return any(passage in text or bool(bare and bare in text) for text in texts)


def plain_texts(texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts as passages are looked for in them: with single spaces."""
    return tuple(_plain(text) for text in texts)


def _plain(text: str) -> str:
    return " ".join(text.split())
