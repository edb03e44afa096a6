"""Reads scripts and faults: from mappings, and from YAML, JSON or TOML files; says which field is wrong.

A script:
    rules:                            # the first that matches speaks
      - model: "claude-*"             # a glob
        text: "weather"               # a regular expression, searched in the last text that was sent
        turn: 1
        answer: {text: "Let me look.", tool_calls: [{name: weather, arguments: {city: Bern}}]}
      - {text: "bad", answer: {text: "No.", stop: refused}}
    otherwise: "You said: {text}"     # an echo when left out

Faults:
    seed: 1
    rates: {"429": 0.1, cut_after: 0.05}
    at_most_per_digest: 2             # faults by rate for one request, however often it is sent
    retry_after: 1                    # seconds, unless a scripted fault has its own
    counted: true                     # whether timeouts are paid
    gap_ms: 100                       # the pauses of slow streams
    capacity: 20                      # requests at a time; more get 429
    script:                           # goes before the rates
      - {fault: "429", nth: 3, retry_after: 604800}
      - {fault: stalled_stream, text: "slow", model: "gpt-*", times: 2}    # times: a number, or always
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from muster.domain.call import Stop, ToolCall
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadFile
from muster.domain.script import ECHO, Line, Rule, Script
from muster.sim.faults import Cue, Fault, Faults, Kind

Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(ge=0)]

T = TypeVar("T")


class _ToolUse(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] = {}
    id: str = ""  # empty: the server makes one


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    text: str = ""
    tool_calls: list[_ToolUse] = []
    stop: Stop | None = None


class _Rule(msgspec.Struct, forbid_unknown_fields=True):
    answer: str | _Answer
    model: str = "*"
    text: str = ""
    turn: Positive | None = None


class _Script(msgspec.Struct, forbid_unknown_fields=True):
    rules: list[_Rule] = []
    otherwise: str | _Answer | None = None


class _Cue(msgspec.Struct, forbid_unknown_fields=True):
    fault: Kind
    nth: Positive | None = None
    model: str = "*"
    text: str = ""
    times: Positive | Literal["always"] = 1
    retry_after: Seconds | None = None
    counted: bool | None = None
    gap_ms: Seconds | None = None


class _Faults(msgspec.Struct, forbid_unknown_fields=True):
    seed: int = 0
    rates: dict[Kind, float] = {}
    at_most_per_digest: Annotated[int, Meta(ge=0)] | None = None
    retry_after: Seconds | None = None
    counted: bool = True
    gap_ms: Seconds = 100.0
    capacity: Positive | None = None
    script: list[_Cue] = []


def load_script(path: str | Path) -> Script:
    """Read a script from a file."""
    try:
        return read_script(_load(Path(path)))
    except BadArgument as error:
        raise BadFile(str(path), error.message) from None


def load_faults(path: str | Path) -> Faults:
    """Read faults from a file."""
    try:
        return read_faults(_load(Path(path)))
    except BadArgument as error:
        raise BadFile(str(path), error.message) from None


def read_script(found: Json) -> Script:
    """Make a script of a mapping, or raise BadArgument with the field that is wrong."""
    script = _convert(found, _Script, "script")
    rules = tuple(_rule(rule, f"script.rules[{index}]") for index, rule in enumerate(script.rules))
    return Script(rules=rules, otherwise=ECHO if script.otherwise is None else _line(script.otherwise))


def read_faults(found: Json) -> Faults:
    """Make faults of a mapping, or raise BadArgument with the field that is wrong."""
    faults = _convert(_with_names(found), _Faults, "faults")
    _check_rates(faults.rates)
    return Faults(
        seed=faults.seed,
        rates=tuple((_fault(_Cue(fault=kind), faults), rate) for kind, rate in sorted(faults.rates.items())),
        at_most_per_digest=faults.at_most_per_digest,
        script=tuple(_cue(cue, faults, f"faults.script[{index}]") for index, cue in enumerate(faults.script)),
        capacity=faults.capacity,
        retry_after=faults.retry_after,
    )


def _rule(rule: _Rule, where: str) -> Rule:
    _check_pattern(rule.text, where)
    return Rule(line=_line(rule.answer), model=rule.model, text=rule.text, turn=rule.turn)


def _line(answer: str | _Answer) -> Line:
    if isinstance(answer, str):
        return Line(text=answer)
    calls = tuple(ToolCall(id=use.id, name=use.name, arguments=use.arguments) for use in answer.tool_calls)
    stop = answer.stop or (Stop.TOOL_USE if calls else Stop.END)
    return Line(text=answer.text, tool_calls=calls, stop=stop)


def _cue(cue: _Cue, faults: _Faults, where: str) -> Cue:
    _check_pattern(cue.text, where)
    times = None if cue.times == "always" else cue.times
    return Cue(fault=_fault(cue, faults), nth=cue.nth, model=cue.model, text=cue.text, times=times)


def _fault(cue: _Cue, faults: _Faults) -> Fault:
    return Fault(
        kind=cue.fault,
        retry_after=faults.retry_after if cue.retry_after is None else cue.retry_after,
        counted=faults.counted if cue.counted is None else cue.counted,
        gap_ms=faults.gap_ms if cue.gap_ms is None else cue.gap_ms,
    )


def _with_names(found: Json) -> Json:
    # In YAML and Python 429 is a number; kinds are names.
    if not isinstance(found, Mapping):
        return found
    named = dict(found)
    if isinstance(named.get("rates"), Mapping):
        named["rates"] = {str(kind): rate for kind, rate in named["rates"].items()}
    if isinstance(named.get("script"), list):
        named["script"] = [_named(cue) for cue in named["script"]]
    return named


def _named(cue: Json) -> Json:
    return {**cue, "fault": str(cue["fault"])} if isinstance(cue, Mapping) and "fault" in cue else cue


def _check_rates(rates: Mapping[Kind, float]) -> None:
    for kind, rate in rates.items():
        if not 0 <= rate <= 1:
            raise BadArgument(f"faults.rates.{kind}: {rate} is not between 0 and 1")
    if sum(rates.values()) > 1:
        raise BadArgument("faults.rates: the rates are more than 1 together")


def _check_pattern(pattern: str, where: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise BadArgument(f"{where}.text: {pattern!r} is not a regular expression: {error}") from None


def _convert(found: Json, kind: type[T], name: str) -> T:
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        what, _, rest = str(error).partition(" - at `")
        place = rest.rpartition("$")[2].rstrip("`")
        raise BadArgument(f"{name}{place}: {what}") from None


def _load(path: Path) -> Json:
    try:
        return _parse(path, path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadFile(str(path), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadFile(str(path), "is not UTF-8") from None


def _parse(path: Path, text: str) -> Json:
    parse = {".toml": _parse_toml, ".json": _parse_json}.get(path.suffix, _parse_yaml)
    return parse(path, text)


def _parse_yaml(path: Path, text: str) -> Json:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        raise BadFile(str(path), error.problem or "is not YAML", line=line, column=column) from None
    except yaml.YAMLError as error:
        raise BadFile(str(path), f"is not YAML: {error}") from None


def _parse_json(path: Path, text: str) -> Json:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadFile(str(path), error.msg, line=error.lineno, column=error.colno) from None


def _parse_toml(path: Path, text: str) -> Json:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadFile(str(path), str(error)) from None
