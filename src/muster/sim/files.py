"""Reads scripts and faults: from mappings, and from YAML, JSON or TOML files; says which field is wrong.

A script:
    thinking: true                    # models think, as with --thinking on
    rules:                            # the first that matches speaks
      - model: "claude-*"             # a glob
        text: "weather"               # a regular expression, searched in the last text that was sent
        turn: 1
        answer: {text: "Let me look.", tool_calls: [{name: weather, arguments: {city: Bern}}]}
      - {text: "bad", answer: {text: "No.", stop: refused, thinking: 900, redacted: true}}   # tokens; 0: none
    otherwise: "You said: {text}"     # an echo when left out

Faults:
    seed: 1
    rates: {"429": 0.1, cut_after: 0.05}
    at_most_per_digest: 2             # faults by rate for one request, however often it is sent
    retry_after: 1                    # seconds, unless a scripted fault has its own
    counted: true                     # whether timeouts are paid
    gap_ms: 100                       # the pauses of slow streams
    capacity: 20                      # requests at a time; more get 429
    looks: 1                          # how often a batch's fault is seen that passes
    script:                           # goes before the rates
      - {fault: "429", nth: 3, retry_after: 604800}
      - {fault: stalled_stream, text: "slow", model: "gpt-*", times: 2}    # times: a number, or always

The tier flex can be full (`resource_unavailable`), and has faults of its own besides those of live requests:
    rates: {resource_unavailable: 0.2, flex/timeout: 0.05}

A fault is of live requests unless it says another operation: `op` in the script, `op/fault` in the rates. Faults that
only members (`expired`, `duplicate`, `missing`, `unknown_id`) or whole batches (`expiry`, `validation_failure`,
`late_404`, `unknown_status`, `no_results_url`, `foreign_results_url`) can have need not say it:
    rates: {"500": 0.1, batch_create/cut_after: 0.2, member/529: 0.05, member/truncated: 0.01, missing: 0.01}
    script:
      - {fault: "429", op: batch_retrieve, nth: 2, retry_after: 1}
      - {fault: "400", op: member, text: "bad"}       # members can also have the honest errors, and `truncated`
      - {fault: late_404, looks: 2}                   # every batch operation counts its own: `nth` batches here
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from muster.domain.call import Stop, ToolCall
from muster.domain.canonical import Json, JsonObject
from muster.domain.errors import BadArgument, BadFile, NotFound
from muster.domain.script import ECHO, Line, Rule, Script
from muster.sim.faults import Fault, FaultKind, Faults, Op, ScriptedFault, kinds_of
from muster.text import typed
from muster.text.documents.toml_reader import toml_flaw
from muster.text.json_documents import json_words
from muster.text.typed import Meta
from muster.text.words import conversion_words

Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(ge=0)]

HOMES = (Op.LIVE, Op.FLEX, Op.MEMBER, Op.BATCH)  # where a fault is that does not say it: the first that can have it
TALKING = (Op.LIVE, Op.FLEX, Op.MEMBER)  # these have a model and a text

T = TypeVar("T")


class _ToolUse(typed.Struct, forbid_unknown_fields=True):
    name: str
    arguments: JsonObject = typed.field(default_factory=dict)
    id: str = ""  # empty: the server makes one


class _Answer(typed.Struct, forbid_unknown_fields=True):
    text: str = ""
    tool_calls: list[_ToolUse] = typed.field(default_factory=list)
    stop: Stop | None = None
    thinking: Annotated[int, Meta(ge=0)] | None = None
    redacted: bool = False


class _ScriptRule(typed.Struct, forbid_unknown_fields=True):
    answer: str | _Answer
    model: str = "*"
    text: str = ""
    turn: Positive | None = None


class _Script(typed.Struct, forbid_unknown_fields=True):
    rules: list[_ScriptRule] = typed.field(default_factory=list)
    otherwise: str | _Answer | None = None
    thinking: bool | None = None


class _ScriptedFault(typed.Struct, forbid_unknown_fields=True):
    fault: FaultKind
    op: Op | None = None
    nth: Positive | None = None
    model: str = "*"
    text: str = ""
    times: Positive | Literal["always"] = 1
    retry_after: Seconds | None = None
    counted: bool | None = None
    gap_ms: Seconds | None = None
    looks: Positive | None = None


class _Faults(typed.Struct, forbid_unknown_fields=True):
    seed: int = 0
    rates: dict[str, float] = typed.field(default_factory=dict)
    at_most_per_digest: Annotated[int, Meta(ge=0)] | None = None
    retry_after: Seconds | None = None
    counted: bool = True
    gap_ms: Seconds = 100.0
    looks: Positive = 1
    capacity: Positive | None = None
    script: list[_ScriptedFault] = typed.field(default_factory=list)


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


def read_script(found: Any) -> Script:
    """Make a script of a mapping, or raise BadArgument with the field that is wrong."""
    script = _convert(found, _Script, "script")
    rules = tuple(_rule(rule, f"script.rules[{index}]") for index, rule in enumerate(script.rules))
    otherwise = ECHO if script.otherwise is None else _line(script.otherwise)
    return Script(rules=rules, otherwise=otherwise, thinking=script.thinking)


def read_faults(found: Any) -> Faults:
    """Make faults of a mapping, or raise BadArgument with the field that is wrong."""
    faults = _convert(_with_names(found), _Faults, "faults")
    rates = tuple((_fault(_rated(name), faults, "faults.rates"), rate) for name, rate in sorted(faults.rates.items()))
    _check_rates(rates)
    return Faults(
        seed=faults.seed,
        rates=rates,
        at_most_per_digest=faults.at_most_per_digest,
        script=tuple(
            _scripted_fault(scripted, faults, f"faults.script[{index}]") for index, scripted in enumerate(faults.script)
        ),
        capacity=faults.capacity,
        retry_after=faults.retry_after,
    )


def _rule(rule: _ScriptRule, where: str) -> Rule:
    _check_pattern(rule.text, where)
    return Rule(line=_line(rule.answer), model=rule.model, text=rule.text, turn=rule.turn)


def _line(answer: str | _Answer) -> Line:
    if isinstance(answer, str):
        return Line(text=answer)
    calls = tuple(ToolCall(id=use.id, name=use.name, arguments=use.arguments) for use in answer.tool_calls)
    stop = answer.stop or (Stop.TOOL_USE if calls else Stop.END)
    return Line(text=answer.text, tool_calls=calls, stop=stop, thinking=answer.thinking, redacted=answer.redacted)


def _scripted_fault(scripted: _ScriptedFault, faults: _Faults, where: str) -> ScriptedFault:
    _check_pattern(scripted.text, where)
    times = None if scripted.times == "always" else scripted.times
    fault = _fault(scripted, faults, where)
    if fault.op not in TALKING and (scripted.text or scripted.model != "*"):
        raise BadArgument(f"{where}: {fault.op} has no text and no model to wait for")
    return ScriptedFault(fault=fault, nth=scripted.nth, model=scripted.model, text=scripted.text, times=times)


def _rated(name: str) -> _ScriptedFault:
    # `op/fault`, or the fault alone.
    op, _, kind = name.rpartition("/")
    return _convert({"fault": kind, "op": op or None}, _ScriptedFault, f"faults.rates.{name}")


def _fault(scripted: _ScriptedFault, faults: _Faults, where: str) -> Fault:
    op = scripted.op or next(op for op in HOMES if scripted.fault in kinds_of(op))
    if scripted.fault not in kinds_of(op):
        raise BadArgument(f"{where}: {scripted.fault} is not a fault of {op}")
    return Fault(
        kind=scripted.fault,
        op=op,
        retry_after=faults.retry_after if scripted.retry_after is None else scripted.retry_after,
        counted=faults.counted if scripted.counted is None else scripted.counted,
        gap_ms=faults.gap_ms if scripted.gap_ms is None else scripted.gap_ms,
        looks=faults.looks if scripted.looks is None else scripted.looks,
    )


def _with_names(found: Any) -> Any:
    # In YAML and Python 429 is a number; kinds are names.
    if not isinstance(found, Mapping):
        return found
    named = dict(found)
    if isinstance(named.get("rates"), Mapping):
        named["rates"] = {str(kind): rate for kind, rate in named["rates"].items()}
    if isinstance(named.get("script"), list):
        named["script"] = [_named(scripted) for scripted in named["script"]]
    return named


def _named(scripted: Json) -> Json:
    return (
        {**scripted, "fault": str(scripted["fault"])}
        if isinstance(scripted, Mapping) and "fault" in scripted
        else scripted
    )


def _check_rates(rates: Sequence[tuple[Fault, float]]) -> None:
    for fault, rate in rates:
        if not 0 <= rate <= 1:
            raise BadArgument(f"faults.rates.{fault.name}: {rate} is not between 0 and 1")
        if sum(other for another, other in rates if another.op is fault.op) > 1:
            raise BadArgument(f"faults.rates: the rates of {fault.op} add up to more than 1")


def _check_pattern(pattern: str, where: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise BadArgument(f"{where}.text: {pattern!r} is not a regular expression: {error}") from None


def _convert(found: Json, kind: type[T], name: str) -> T:
    try:
        return typed.convert(found, kind)
    except typed.ValidationError as error:
        what, _, rest = str(error).partition(" - at `")
        place = rest.rpartition("$")[2].rstrip("`")
        raise BadArgument(f"{name}{place}: {conversion_words(what)}") from None


def _load(path: Path) -> Any:
    try:
        return _parse(path, path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(f"no such file: {path}") from None
    except OSError as error:
        raise BadFile(str(path), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadFile(str(path), "is not UTF-8") from None


def _parse(path: Path, text: str) -> Any:
    parse = {".toml": _parse_toml, ".json": _parse_json}.get(path.suffix, _parse_yaml)
    return parse(path, text)


def _parse_yaml(path: Path, text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        raise BadFile(str(path), error.problem or "is not YAML", line=line, column=column) from None
    except yaml.YAMLError as error:
        raise BadFile(str(path), f"is not YAML: {error}") from None


def _parse_json(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadFile(
            str(path), f"not valid JSON: {json_words(error)}", line=error.lineno, column=error.colno
        ) from None


def _parse_toml(path: Path, text: str) -> Json:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, line, column = toml_flaw(str(error), text)
        raise BadFile(str(path), what, line=line, column=column) from None
