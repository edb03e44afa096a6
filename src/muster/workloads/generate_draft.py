"""A case as a model wrote it, made into one that may be kept: only the fields that are its to write are taken. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from muster.domain.canonical import Json
from muster.shapes.json_limits import flaw_of
from muster.shapes.schema import flaw as schema_flaw
from muster.workloads.generate_question import CASE_SCHEMA

MOST_TEXT = 20_000  # characters
MOST_PARTS = 30  # messages, checks, rubric items, tags
_LONGEST_NAME = 60
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # in no text file


class Rejected(Exception):
    """A case that is not taken: the kind of the reason, and the reason in full."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind, self.why = kind, why


def draft_of(written: Json) -> dict[str, Any]:
    """Give a case in the words of the suite format, under the name that the model gave it; or raise Rejected."""
    wrong = flaw_of(written) or schema_flaw(written, CASE_SCHEMA)
    if wrong:
        raise Rejected("malformed", wrong)
    _require_bounds(written)
    for text in _texts(written):
        _require_text(text)
    _require_sense(written)
    expected = {"output": _checks(written), "rubric": _rubric(written)}
    draft = {
        "id": slug(written["id"]),
        "description": written["description"].strip(),
        "tags": list(dict.fromkeys(filter(None, map(slug, written["tags"])))),
        "input": {"messages": [_only(message, "role", "content") for message in written["messages"]]},
        "expected": {name: value for name, value in expected.items() if value},
    }
    if expected["rubric"]:
        draft["evaluator_config"] = {"evaluator": "judge"}
    return {name: value for name, value in draft.items() if value}


def asked_in(case: Mapping[str, Any]) -> str:
    """Give all that is asked in a case, to be compared."""
    return "\n".join(message["content"] for message in case["input"]["messages"])


def slug(text: str) -> str:
    """Give a name in kebab-case; empty when nothing of it is left."""
    return _NOT_IN_NAMES.sub("-", text.rpartition("/")[2].lower()).strip("-")[:_LONGEST_NAME].strip("-")


def _require_bounds(written: Mapping[str, Any]) -> None:
    for name in ("tags", "messages", "output", "rubric"):
        if len(written[name]) > MOST_PARTS:
            raise Rejected("too large", f"it has more than {MOST_PARTS} {name}")


def _require_text(text: str) -> None:
    if len(text) > MOST_TEXT:
        raise Rejected("too large", f"a text in it has more than {MOST_TEXT:,} characters")
    if _UNREADABLE.search(text):
        raise Rejected("malformed", "a text in it holds characters that no text file can")
    if "{{" in text:  # in a suite they name variables, and nothing of a model's is ever expanded
        raise Rejected("braces", "a text in it holds {{, which would name a variable")


def _require_sense(written: Mapping[str, Any]) -> None:
    if not written["description"].strip():
        raise Rejected("no description", "it has no description")
    last = written["messages"][-1] if written["messages"] else {}
    if last.get("role") != "user" or not last["content"].strip():
        raise Rejected("no question", "its last message is none of the user's")
    if not written["output"] and not written["rubric"]:
        raise Rejected("nothing to check", "it has no check and no rubric")


def _checks(written: Mapping[str, Any]) -> list[dict[str, Any]]:
    if any(not check["value"].strip() for check in written["output"]):
        raise Rejected("empty check", "it has a check without a value")
    return [_only(check, "kind", "value") for check in written["output"]]


def _rubric(written: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the rubric with weights that add up to 1."""
    items = written["rubric"]
    total = sum(item["weight"] for item in items)
    if any(item["weight"] <= 0 or not item["description"].strip() for item in items):
        raise Rejected("empty rubric item", "it has a rubric item without a weight or a description")
    ids = [slug(item["id"]) for item in items]
    if not all(ids) or len(set(ids)) < len(ids):
        raise Rejected("rubric ids", "its rubric items have no ids of their own")
    return [
        {"id": id_, "description": item["description"].strip(), "weight": round(item["weight"] / total, 4)}
        for id_, item in zip(ids, items, strict=True)
    ]


def _only(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: given[name] for name in names}


def _texts(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _texts(part)]
