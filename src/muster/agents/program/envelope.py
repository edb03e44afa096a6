"""What a program of the exec protocol is asked: one JSON object with the phase and its context."""

import json
from typing import Any

from muster.domain.agent import PHASE_SECONDS
from muster.domain.call import Request
from muster.domain.canonical import Json
from muster.domain.errors import InvalidRequest

PROPOSE = "propose"
EVALUATE = "evaluate"


def context_of(request: Request, agent: str, seconds: float) -> dict[str, Json]:
    """Give the context of a request, or for one without the smallest that says the same."""
    known: dict[str, Json] = {"phase": PROPOSE, "agent_id": agent, PHASE_SECONDS: seconds}
    asked = _smallest(request) if request.context is None else request.context
    return known | dict(asked) | dict(request.volatile)


def phase_of(context: dict[str, Json], agent: str) -> str:
    """Give the phase that a context names, which must be one of the two."""
    phase = context["phase"]
    if phase not in (PROPOSE, EVALUATE):
        raise InvalidRequest(
            f"agent {agent!r}: there is no phase {phase!r} in the exec protocol",
            suggestions=(f'let "phase" in the context be "{PROPOSE}" or "{EVALUATE}"',),
        )
    return str(phase)


def encode(context: dict[str, Json], agent: str) -> bytes:
    """Write the envelope of a context."""
    return written({"phase": phase_of(context, agent), "context": context}, agent)


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
