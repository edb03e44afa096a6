"""A case as a model wrote it, made into one that may be kept: only the fields that are its to write are taken. Pure."""

import json
import re
import tempfile
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muster.domain.call import Request, ask
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.suites.format.discovery import find_suites
from muster.suites.format.suite import Suite, examine, open_suite
from muster.suites.values.case import Case
from muster.text.json_documents import flaw_of
from muster.text.schemas.json_schema import flaw as schema_flaw

MAX_TEXT = 20_000  # characters
MAX_PARTS = 30  # messages, checks, rubric items, tags
_MAX_NAME = 60
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # in no text file


class RejectedCase(Exception):
    """A case that is not taken: the kind of the reason, and the reason in full."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind, self.why = kind, why


def draft_of(written: Any) -> dict[str, Any]:
    """Return a case in the words of the suite format, under the name that the model gave it; or raise Rejected."""
    wrong = flaw_of(written) or schema_flaw(written, CASE_SCHEMA)
    if wrong:
        raise RejectedCase("malformed", wrong)
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
    """Return all that is asked in a case, to be compared."""
    return "\n".join(message["content"] for message in case["input"]["messages"])


def slug(text: str) -> str:
    """Return a name in kebab-case; empty when nothing of it is left."""
    return _NOT_IN_NAMES.sub("-", text.rpartition("/")[2].lower()).strip("-")[:_MAX_NAME].strip("-")


def _require_bounds(written: Mapping[str, Any]) -> None:
    for name in ("tags", "messages", "output", "rubric"):
        if len(written[name]) > MAX_PARTS:
            raise RejectedCase("too large", f"it has more than {MAX_PARTS} {name}")


def _require_text(text: str) -> None:
    if len(text) > MAX_TEXT:
        raise RejectedCase("too large", f"a text in it has more than {MAX_TEXT:,} characters")
    if _UNREADABLE.search(text):
        raise RejectedCase("malformed", "a text in it holds characters that no text file can")
    if "{{" in text:  # in a suite they name variables, and nothing of a model's is ever expanded
        raise RejectedCase("braces", "a text in it holds {{, which would name a variable")


def _require_sense(written: Mapping[str, Any]) -> None:
    if not written["description"].strip():
        raise RejectedCase("no description", "it has no description")
    last = written["messages"][-1] if written["messages"] else {}
    if last.get("role") != "user" or not last["content"].strip():
        raise RejectedCase("no question", "its last message is none of the user's")
    if not written["output"] and not written["rubric"]:
        raise RejectedCase("nothing to check", "it has no check and no rubric")


def _checks(written: Mapping[str, Any]) -> list[dict[str, Json]]:
    if any(not check["value"].strip() for check in written["output"]):
        raise RejectedCase("empty check", "it has a check without a value")
    return [_only(check, "kind", "value") for check in written["output"]]


def _rubric(written: Mapping[str, Any]) -> list[dict[str, Json]]:
    """Return the rubric with weights that add up to 1."""
    items = written["rubric"]
    total = sum(item["weight"] for item in items)
    if any(item["weight"] <= 0 or not item["description"].strip() for item in items):
        raise RejectedCase("empty rubric item", "it has a rubric item without a weight or a description")
    ids = [slug(item["id"]) for item in items]
    if not all(ids) or len(set(ids)) < len(ids):
        raise RejectedCase("rubric ids", "its rubric items have no ids of their own")
    return [
        {"id": id_, "description": item["description"].strip(), "weight": round(item["weight"] / total, 4)}
        for id_, item in zip(ids, items, strict=True)
    ]


def _only(given: Mapping[str, Json], *names: str) -> dict[str, Json]:
    return {name: given[name] for name in names}


def _texts(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _texts(part)]


KINDS = ("contains", "not_contains", "equals", "regex", "json_path")
ROLES = ("system", "user", "assistant")

INSTRUCTIONS = """\
You write test cases for an AI agent. Each case gives the agent a conversation and says what its answer must be like.

Write cases that differ from each other and from those that are there: ordinary requests, edge cases, requests that \
must be declined, wrong or missing input. Each tests one thing, which its description names in one sentence. The last \
message is the user's, as a real user would write it.

A check is decided without a model, so write only checks that every right answer meets: kind "contains", \
"not_contains", "equals" or "regex" looks at the text of the answer, "json_path" at an answer that is JSON, and its \
value is a path that must find something. What a check cannot decide belongs into the rubric: items with an id, a \
description of what a good answer has, and a weight; the weights of a case add up to 1. Every case has a check, a \
rubric or both.

The id of a case is a few words in kebab-case. Tags are some of smoke, happy-path, error-handling, edge-case."""


def _object(**properties: Json) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(of: Json) -> dict[str, Json]:
    return {"type": "array", "items": of}


_TEXT = {"type": "string"}

CASE_SCHEMA: dict[str, Json] = _object(
    id=_TEXT,
    description=_TEXT,
    tags=_list(_TEXT),
    messages=_list(_object(role={"type": "string", "enum": list(ROLES)}, content=_TEXT)),
    output=_list(_object(kind={"type": "string", "enum": list(KINDS)}, value=_TEXT)),
    rubric=_list(_object(id=_TEXT, description=_TEXT, weight={"type": "number"})),
)
SCHEMA: dict[str, Json] = _object(cases=_list(CASE_SCHEMA))

_TOKENS, _TOKENS_FOR_CASE = 1024, 1200
_MAX_SHOWN = 40  # cases that are there already


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSubject:
    """What the cases are for."""

    skill: str
    description: str = ""
    prompt: str = ""  # the system prompt of the agent
    there: Sequence[str] = field(default_factory=tuple)  # what is tested already, one line for each case


def question_for(subject: GenerationSubject, wanted: int, rejected: Sequence[str]) -> Request:
    """Ask for some cases more; what was rejected the last time is told."""
    parts = [f"The agent is called {subject.skill}."]
    if subject.description:
        parts.append(f"What it is for:\n{subject.description}")
    if subject.prompt:
        parts.append(f"Its system prompt, as JSON text:\n{json.dumps(subject.prompt, ensure_ascii=False)}")
    if subject.there:
        shown = "\n".join(f"- {line}" for line in subject.there[-_MAX_SHOWN:])
        parts.append(f"These cases are there already; write none that asks nearly the same:\n{shown}")
    if rejected:
        parts.append("Of the cases that you wrote before, some could not be taken:\n" + "\n".join(rejected))
    parts.append(f"Write {wanted} {'case' if wanted == 1 else 'cases'}.")
    return Request(
        messages=ask("\n\n".join(parts)).messages,
        system=INSTRUCTIONS,
        usual_tokens=_TOKENS + _TOKENS_FOR_CASE * wanted,
        schema=SCHEMA,
    )


ALIKE = 0.8
_WIDTH = 5  # characters of a shingle

Shingles = frozenset[str]


def normalised(text: str) -> str:
    """Return the letters and digits of a text, in small letters; of one that has none, what is not white."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, folded)) or "".join(folded.split())


def shingles(text: str) -> Shingles:
    """Cut a normalised text into all its overlapping pieces."""
    return frozenset(text[start : start + _WIDTH] for start in range(max(1, len(text) - _WIDTH + 1)))


def likeness(one: Shingles, other: Shingles) -> float:
    """Return the share of pieces that both have, from 0 to 1."""
    return len(one & other) / len(one | other)


class KnownCases:
    """Texts that are there already, and who is among them."""

    def __init__(self) -> None:
        self._members: list[tuple[str, Shingles]] = []

    def add(self, name: str, text: str) -> None:
        """Take a text in."""
        self._members.append((name, shingles(normalised(text))))

    def alike(self, text: str) -> str | None:
        """Name the first one that is nearly the same."""
        found = shingles(normalised(text))
        return next((name for name, member in self._members if likeness(found, member) >= ALIKE), None)


def prove(skill: str, case: Mapping[str, Json]) -> None:
    """Raise Rejected unless the case is read back from a suite file as it was meant."""
    suite = {"schema_version": 1, "skill_or_agent": skill, "cases": [case]}
    with tempfile.TemporaryDirectory(prefix="muster-") as folder:
        path = Path(folder) / "cases.yaml"
        path.write_text(json.dumps(suite, ensure_ascii=False), encoding="utf-8")  # JSON is YAML
        examined = examine(path)
        for flaw in (*examined.flaws, *examined.doubts):  # what a suite in use may have, a new one need not
            if flaw.code != "undefined-variable":  # which is sent as it stands
                raise RejectedCase("invalid", _as_told(flaw.message))
        found = list(open_suite(path).cases())
    if [each.id for each in found] != [case["id"]] or spoken(found[0]) != asked_in(case):
        raise RejectedCase("invalid", "it is read back otherwise than it was written")


def _as_told(message: str) -> str:
    """Return a message in the words in which models were always told it: the requests of stored runs hold them."""
    for article in (" regular expression: ", " JSONPath: "):
        message = message.replace(f" is not a{article}", f" is no{article}")
    return message


def the_suite(folder: str) -> Suite:
    """Open the one suite of a folder."""
    paths = find_suites([Path(folder)])
    if len(paths) != 1:
        names = ", ".join(str(path) for path in paths)
        raise BadArgument(
            f"{folder} has {len(paths)} suites: {names}" if paths else f"no suite found in {folder}",
            suggestions=("name the file of one suite",),
        )
    return open_suite(paths[0])


def spoken(case: Case) -> str:
    """Return all that is asked in a case, to be compared."""
    return "\n".join(message.text for message in case.messages)
