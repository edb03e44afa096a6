"""What went wrong in a tool, told in its own words: the names of its parameters, and the tools that help.

Errors come from use cases, which know neither tools nor their parameters; arguments in them have the names that the
application layer uses, and suggestions that are commands are for somebody at the command line.
"""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ValidationError

from muster.app.parts.library import Library
from muster.app.serving.order_models import OrderModel
from muster.app.serving.request_flaws import flaws_sentence, order_flaws, request_flaws
from muster.domain.advice import ArgumentAdvice
from muster.domain.errors import BadArgument, LimitReached, MusterError, NotFound
from muster.domain.flaw import FieldFlaw

MAX_MESSAGE = 10_000  # characters
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


def error_answer(
    error: MusterError, takes: type[BaseModel], clean: Clean, given: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return an error of a use case as the model reads it; `given` are the arguments of the call."""
    if isinstance(error, BadArgument):
        error = error.named(_parameters(error, takes))
    ways = [told for way in error.suggestions if (told := _told(way, takes))]
    message = clean(error.message)
    if len(message) > MAX_MESSAGE:
        message = f"{message[:MAX_MESSAGE]}…"
    answer: dict[str, Any] = {"error": error.code, "message": message}
    if ways:
        answer["suggestions"] = [clean(way) for way in dict.fromkeys(ways)]
    if flaws := error.named(given or {}) if isinstance(error, NotFound) else error.flaws:
        answer["fields"] = [_field(flaw, takes, clean) for flaw in flaws]
    if isinstance(error, LimitReached):
        answer["retry_after_secs"] = round(error.retry_after, 1)
    return answer


def _parameters(error: BadArgument, takes: type[BaseModel]) -> dict[str, str]:
    """Return the names that parameters of a tool have, by those that an error names."""
    names = {flaw.path.partition(".")[0].partition("[")[0] for flaw in error.flaws}
    return {name: told for name in names if (told := parameter_of(name, takes))}


def _field(flaw: FieldFlaw, takes: type[BaseModel], clean: Clean) -> dict[str, Any]:
    """Return what is wrong with a parameter as JSON."""
    way = _told(flaw.suggestion, takes) if flaw.suggestion else ""
    return replace(flaw, message=clean(flaw.message)[:MAX_MESSAGE], suggestion=clean(way or "")).record()


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
    is_list = any(one.get("type") == "array" for one in schema.get("anyOf", [schema]))  # which may be null too
    return f"{name}={json.dumps([way.value] if is_list else way.value, ensure_ascii=False)}"


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


def flaws_answer(error: ValidationError, takes: type[BaseModel], given: Any, library: Library) -> dict[str, Any]:
    """Return what is wrong with the arguments of a call: which, and what it must be; never what was sent."""
    errors = error.errors(include_url=False)
    if issubclass(takes, OrderModel):
        flaws = order_flaws(library, takes, errors, given)
    else:
        flaws = request_flaws(errors, {name: name for name in takes.model_fields})
    answer = {"error": BadArgument.code, "message": flaws_sentence(flaws)}
    fields = [flaw.record() for flaw in flaws if flaw.path]
    return answer | ({"fields": fields} if fields else {})
