"""What a model is asked when it is to write cases, and the shape in which it answers. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from muster.domain.call import Request, ask
from muster.domain.canonical import Json

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
_MOST_SHOWN = 40  # cases that are there already


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What the cases are for."""

    skill: str
    description: str = ""
    prompt: str = ""  # the system prompt of the agent
    there: Sequence[str] = field(default_factory=tuple)  # what is tested already, one line for each case


def question_for(subject: Subject, wanted: int, rejected: Sequence[str]) -> Request:
    """Ask for some cases more; what was rejected the last time is told."""
    parts = [f"The agent is called {subject.skill}."]
    if subject.description:
        parts.append(f"What it is for:\n{subject.description}")
    if subject.prompt:
        parts.append(f"Its system prompt, as JSON text:\n{json.dumps(subject.prompt, ensure_ascii=False)}")
    if subject.there:
        shown = "\n".join(f"- {line}" for line in subject.there[-_MOST_SHOWN:])
        parts.append(f"These cases are there already; write none that asks nearly the same:\n{shown}")
    if rejected:
        parts.append("Of the cases that you wrote before, some could not be taken:\n" + "\n".join(rejected))
    parts.append(f"Write {wanted} {'case' if wanted == 1 else 'cases'}.")
    return Request(
        messages=ask("\n\n".join(parts)).messages,
        system=INSTRUCTIONS,
        max_tokens=_TOKENS + _TOKENS_FOR_CASE * wanted,
        schema=SCHEMA,
    )
