"""What went wrong in a tool, told in its own words: the names of its parameters, and the tools that help.

Errors come from use cases, which know neither tools nor their parameters; arguments in them have the names that the
application layer uses, and suggestions that are commands are for somebody at the command line.
"""

import json
import shlex
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from muster.domain.advice import ArgumentAdvice
from muster.domain.errors import BadArgument, LimitReached, MusterError

MOST_TOLD = 5  # things that are wrong with one call
LONGEST_MESSAGE = 10_000  # characters
# Arguments of use cases whose parameter has another name in tools; one that has the argument's own name comes first.
PARAMETERS = {
    "agent": "agents",
    "budget": "budget_usd",
    "continue": "continues",
    "path": "suites",
    "schema": "output_schema",
    "tag": "tags",
    "timeout": "timeout_secs",
}
# Commands that list what can be named, and the tools that do.
LISTS = {
    "runs list": "list_work names what there is",
    "task list": "list_work(kind='task') names what there is",
    "chain list": "list_work(kind='chain') names what there is",
    "batch list": "list_work(kind='batch') names what there is",
    "pool slots": "pool() lists the slots",
    "pool status": "pool() shows it",
    "pool context list": "context(action='list') names the texts",
}

Clean = Callable[[str], str]


def error_answer(error: MusterError, takes: type[BaseModel], clean: Clean) -> dict[str, Any]:
    """Return an error of a use case as the model reads it."""
    if isinstance(error, BadArgument) and error.argument:
        error = error.renamed(parameter_of(error.argument, takes) or error.argument)
    ways = [told for way in error.suggestions if (told := _told(way, takes))]
    message = clean(error.message)
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[:LONGEST_MESSAGE]}…"
    answer: dict[str, Any] = {"error": error.code, "message": message}
    if ways:
        answer["suggestions"] = [clean(way) for way in dict.fromkeys(ways)]
    if isinstance(error, LimitReached):
        answer["retry_after_secs"] = round(error.retry_after, 1)
    return answer


def parameter_of(argument: str, takes: type[BaseModel]) -> str | None:
    """Return the parameter of a tool by which an argument of a use case is given; None when it has none."""
    names = (argument, PARAMETERS.get(argument, argument))
    return next((name for name in names if name in takes.model_fields), None)


def _told(way: str, takes: type[BaseModel]) -> str | None:
    """Return a suggestion in the words of a tool; None for one about a parameter that it does not have."""
    if isinstance(way, ArgumentAdvice):
        name = parameter_of(way.argument, takes)
        return None if name is None else way.named(_assigned(name, way, takes))
    if way.startswith("muster "):
        return tool_for(_words(way)[1:]) or f"the operator can run: {way}"
    return way


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # a quote in it is not closed
        return []


def _assigned(name: str, way: ArgumentAdvice, takes: type[BaseModel]) -> str:
    """Return a parameter and its value as a call writes them; without a value, its name."""
    if way.entry:
        return f"{name}={json.dumps({way.entry: way.value}, ensure_ascii=False)}"
    if not way.value:
        return name
    schema = takes.model_json_schema()["properties"][name]
    return f"{name}={json.dumps([way.value] if schema.get('type') == 'array' else way.value, ensure_ascii=False)}"


def tool_for(command: Sequence[str]) -> str | None:
    """Return the call of a tool that does what a command does; None when there is no such tool."""
    match command:
        case ["runs", "show", run, "--calls"]:
            return f"result(id={run!r}, part='calls')"
        case ["runs", "show", run, "--call", key, *_]:
            return f"result(id={run!r}, part='call', key={key!r})"
        case ["runs", "show", run] | ["task", "result", run]:
            return f"result(id={run!r})"
        case ["runs", "resume", run, "--budget", _]:
            return f"control_run(id={run!r}, action='resume', budget_usd=…)"
        case ["runs", "resume", run] | ["task", "retry", run]:
            return f"control_run(id={run!r}, action='resume')"
        case ["task", ("allow" | "deny") as decision, task]:
            return f"review_task(id={task!r}, decision={decision!r})"
        case ["answer", run, "--call", key, _]:
            return f"answer_question(id={run!r}, key={key!r}, text=…)"
        case ["ask", agent, _]:
            return f"ask(agent={agent!r}, prompt=…)"
    return LISTS.get(" ".join(command))


def flaws_answer(error: ValidationError, takes: type[BaseModel]) -> dict[str, Any]:
    """Return what is wrong with the arguments of a call: which, and what it must be; never what was sent."""
    told = list(dict.fromkeys(_flaw(one, takes) for one in error.errors()))
    more = f"; and {len(told) - MOST_TOLD} more" if len(told) > MOST_TOLD else ""
    return {"error": BadArgument.code, "message": "; ".join(told[:MOST_TOLD]) + more}


def _flaw(flaw: ErrorDetails, takes: type[BaseModel]) -> str:
    place = [str(part) for part in flaw["loc"]]
    if flaw["type"] == "extra_forbidden" and len(place) == 1:
        near = get_close_matches(place[0], takes.model_fields, n=1)
        known = f"did you mean {near[0]}?" if near else f"there are {', '.join(takes.model_fields) or 'none'}"
        return f"{place[0][:100]}: there is no such parameter; {known}"
    if not place:
        return flaw["msg"]
    inside = [part for part in place[1:] if part.isdecimal()]  # others name a type of several that would do
    return f"{'.'.join([place[0][:100], *inside])}: {flaw['msg']}"
