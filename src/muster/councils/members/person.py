"""What a person answers in plain text, read into the shapes in which models answer. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from muster.domain.canonical import Json
from muster.text.json_documents import read_object

PERSON_PROPOSES = 'Write your proposal as plain text. To abstain, write "skip: " and why.'
PERSON_EVALUATES = """\
Write one line for each candidate: its label, a weight from -100 (entirely wrong) to 100 (entirely right), and your
critique. To abstain, write "skip: " and why."""
PERSON_MODERATES = """\
Write the answer of the council as plain text: the winning proposal, made better by what the others contributed. Tell
every objection under "Dissent", and mark the place with its number in brackets, like [1]. To abstain, write "skip: "
and why."""
_FORM = 'write a line "LABEL WEIGHT critique" for each candidate, or "skip: " and why'
_LINE = re.compile(r"(?P<label>\S+?):?\s+(?P<weight>[+-]?\d+(?:\.\d+)?)(?:\s+(?P<critique>.*))?")
# The colon tells an abstention from a proposal to skip something.
_SKIP = re.compile(r"skip\.?(?:\s*:(?P<reason>.*))?", re.IGNORECASE | re.DOTALL)
_MAX_SHOWN = 60


def person_proposal(text: str) -> Mapping[str, Any]:
    """Return what a person wrote as a proposal; `skip` alone or with a reason after a colon abstains."""
    return _skipped(text) or {"text": text.strip()}


def person_evaluation(text: str) -> Mapping[str, Json] | str:
    """Return lines of label, weight and critique as evaluations, or what is wrong with them; JSON is taken too."""
    if text.strip().startswith("{"):
        return read_object(text)
    skipped = _skipped(text)
    if skipped is not None:
        return skipped
    items: list[Json] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        found = _LINE.fullmatch(line)
        if found is None:
            return f"{line[:_MAX_SHOWN]!r} is not an evaluation: {_FORM}"
        critique = found["critique"] or ""
        items.append({"candidate": found["label"], "weight": float(found["weight"]), "critique": critique})
    return {"evaluations": items}


def person_synthesis(text: str, objections: int) -> Mapping[str, Any]:
    """Return what a person wrote as an answer of the council; the mark of an objection is the passage that tells it."""
    marks = ((number, f"[{number}]") for number in range(1, objections + 1))
    told = [{"number": number, "passage": mark} for number, mark in marks if mark in text]
    return _skipped(text) or {"text": text.strip(), "dissent": told}


def _skipped(text: str) -> Mapping[str, Json] | None:
    found = _SKIP.fullmatch(text.strip())
    return None if found is None else {"skipped": True, "reason": (found["reason"] or "").strip()}
