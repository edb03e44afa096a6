"""The answer of a program, before its log is read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.agents.payload import count_of
from muster.domain.agent import PHASE_SECONDS
from muster.domain.call import Request, Stop, ToolCall, Usage
from muster.domain.canonical import Json
from muster.domain.errors import InvalidRequest
from muster.domain.money import Microdollars
from muster.text.json_documents import Fits, find

_UNCOUNTED = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramAnswer:
    """One answer, read from the output."""

    text: str
    data: Any = None
    stop: Stop = Stop.END
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = _UNCOUNTED
    cost: Microdollars | None = None  # None: it did not say
    session: str = ""
    turns: int = 0


def counts(usage: Json) -> Usage:
    """Read the tokens that were used, as far as they are said."""
    said: Mapping[str, Json] = usage if isinstance(usage, dict) else {}
    return Usage(
        input=count_of(said.get("input_tokens")) or 0,
        output=count_of(said.get("output_tokens")) or 0,
        cache_read=count_of(said.get("cache_read_input_tokens")) or 0,
        cache_write=count_of(said.get("cache_creation_input_tokens")) or 0,
    )


PROPOSE = "propose"
EVALUATE = "evaluate"


def context_of(request: Request, agent: str, seconds: float) -> Mapping[str, Json]:
    """Return the context of a request, or for one without the smallest that says the same."""
    known: dict[str, Json] = {"phase": PROPOSE, "agent_id": agent, PHASE_SECONDS: seconds}
    asked = _smallest(request) if request.context is None else request.context
    return known | dict(asked) | dict(request.volatile)


def phase_of(context: Mapping[str, Json], agent: str) -> str:
    """Return the phase that a context names, which must be one of the two."""
    phase = context["phase"]
    if phase not in (PROPOSE, EVALUATE):
        raise InvalidRequest(
            f"agent {agent!r}: unknown phase {phase!r} of the exec protocol",
            suggestions=(f'set "phase" in the context to "{PROPOSE}" or "{EVALUATE}"',),
        )
    return str(phase)


def encode(context: Mapping[str, Json], agent: str) -> bytes:
    """Write the envelope of a context."""
    _check_seconds(context.get(PHASE_SECONDS), agent)
    return written({"phase": phase_of(context, agent), "context": context}, agent)


def _check_seconds(said: Any, agent: str) -> None:
    """Refuse a time that is left and is none: the process would run without a bound, or be told nonsense."""
    is_number = isinstance(said, int | float) and not isinstance(said, bool)
    if said is not None and not (is_number and 0 <= said < float("inf")):
        raise InvalidRequest(
            f"agent {agent!r}: {PHASE_SECONDS} in the context is {said!r}, which is not a number of seconds",
            suggestions=("use a number of 0 or more, not a string",),
        )


def written(value: Any, agent: str) -> bytes:
    """Write one JSON value on a line, in ASCII so that no program has to guess how it is encoded."""
    try:
        return json.dumps(value, allow_nan=False).encode("ascii") + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"agent {agent!r}: the request cannot be written as JSON: {error}") from error


def _smallest(request: Request) -> dict[str, Json]:
    found: dict[str, Json] = {
        "task_description": request.prompt,
        "round_number": 1,
        "total_rounds": 1,
        "candidates": [],
        "previous_critiques": [],
        "user_injections": [],
    }
    return found | ({"role_context": request.system} if request.system else {})


START = "___NSED_START___"
END = "___NSED_END___"  # for people: where the answer ends is for the decoder to say


def find_marked(text: str, fits: Fits) -> Mapping[str, Json] | None:
    """Return the last object that fits, of those that are marked if there are any."""
    return find(text, fits, START)
