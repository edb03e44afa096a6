"""Scripts of the scripted CLI agent: rules that match the prompt, and the steps that are then played.

A script is a JSON list of rules `{"match": "a regular expression", "steps": [...]}`; the first whose expression is
found in the prompt is played, one without `match` fits every prompt; where none fits, the mood of the prompt decides.
"""

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # an agent starts in a moment
    from muster.domain.canonical import Json

Step = dict[str, "Json"]


class BadScript(Exception):
    """A script or a mood cannot be played; the message says why."""


class StepKind(NamedTuple):
    """What a step takes, and what it does."""

    takes: tuple[type, ...]
    does: str


STEPS = {
    "say": StepKind((str,), "says a text, in words as they come and then as a whole"),
    "think": StepKind((str,), "shows a thought"),
    "tool": StepKind((dict,), "uses a tool: name, input, result, failed, meanwhile (steps before its result)"),
    "tools": StepKind((list,), "uses several tools at once"),
    "ask_permission": StepKind(
        (str, dict), "asks whether it may use a tool, and waits for the answer on standard input"
    ),
    "hear": StepKind((bool,), "waits for a message on standard input, and says that it has taken it in"),
    "wait": StepKind((int, float), "does nothing for so many seconds"),
    "hang": StepKind((bool,), "does nothing for ever"),
    "crash": StepKind(
        (int, dict), "dies: code or signal, after partial (text on its output) and log (on standard error)"
    ),
    "children": StepKind((int, dict), "starts processes that stay: count, escape (leave the group), hold_output"),
    "ignore_term": StepKind((bool,), "does not end when it is asked to"),
    "noise": StepKind(
        (str, dict), "writes a line that is no JSON: text, to (stdout or stderr), invalid (no UTF-8), size"
    ),
    "no_exit": StepKind((bool,), "stays when it has answered"),
    "cost": StepKind((int, float), "says that it has cost so many dollars"),
    "turns": StepKind((int,), "says that it took so many turns"),
    "result": StepKind((str,), "answers with this text and not with what it said last"),
    "structured": StepKind((dict, list), "answers with data too"),
    "error": StepKind((str, dict), "answers that it failed: text, subtype"),
    "close_stdout": StepKind((bool,), "closes its output and goes on"),
}


class ScriptRule(NamedTuple):
    """Steps for the prompts in which an expression is found."""

    match: "re.Pattern[str]"
    steps: list[Step]


def load(path: str) -> list[ScriptRule]:
    """Read a script."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123  # pathlib would be a tenth of the start
            rules = json.load(file)
    except (OSError, ValueError) as error:
        raise BadScript(f"{path}: cannot be read: {error}") from error
    if not isinstance(rules, list):
        raise BadScript(f'{path}: must be a list of rules like {{"match": "…", "steps": […]}}')
    return [_rule(rule, f"{path}: rule {number}") for number, rule in enumerate(rules, 1)]


def choose(rules: Sequence[ScriptRule], prompt: str) -> list[Step] | None:
    """Return the steps of the first rule that fits a prompt."""
    return next((rule.steps for rule in rules if rule.match.search(prompt)), None)


def check(steps: object, place: str) -> list[Step]:
    """Return the steps, or say what is wrong with them."""
    if not isinstance(steps, list):
        raise BadScript(f"{place}: steps must be a list")
    for number, step in enumerate(steps, 1):
        _check(step, f"{place}, step {number}")
    return steps


def _rule(rule: object, place: str) -> ScriptRule:
    if not isinstance(rule, dict) or not rule.keys() <= {"match", "steps"}:
        raise BadScript(f"{place}: must have steps, may have match, and nothing else")
    try:
        match = re.compile(rule.get("match", ""))
    except (re.error, TypeError) as error:
        raise BadScript(f"{place}: match is not a regular expression: {error}") from error
    return ScriptRule(match, check(rule.get("steps"), place))


def _check(step: object, place: str) -> None:
    if not isinstance(step, dict) or len(step) != 1:
        raise BadScript(f"{place}: a step is one name with its value")
    [(name, value)] = step.items()
    kind = STEPS.get(name)
    if kind is None:
        raise BadScript(f"{place}: unknown step {name!r}; use one of {', '.join(STEPS)}")
    if not isinstance(value, kind.takes) or (isinstance(value, bool) and bool not in kind.takes):
        raise BadScript(f"{place}: {name} does not take {value!r}")
    for tool in _tools_of(name, value):
        _check_tool(tool, f"{place} ({name})")


def _tools_of(name: str, value: Any) -> list[Any]:
    if name == "tools":
        return list(value)
    return [value] if name in ("tool", "ask_permission") else []


def _check_tool(tool: object, place: str) -> None:
    if isinstance(tool, str):
        return
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        raise BadScript(f"{place}: a tool needs a name")
    check(tool.get("meanwhile", []), place)
