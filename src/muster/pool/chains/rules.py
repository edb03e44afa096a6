"""What must hold of a chain before it is run: names that are known, templates, conditions and paths that can be read.

Every flaw has a place, so that a file can be told with its line.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import PurePath

from muster.domain.canonical import Json
from muster.domain.dispatch import MODES, Mode
from muster.domain.errors import BadArgument
from muster.domain.flaw import FieldFlaw, FlawCode
from muster.domain.money import MAX_USD
from muster.pool.chains.chain import (
    MAX_BACKOFF,
    MAX_RETRIES,
    MAX_STEPS,
    Chain,
    ChainStep,
)
from muster.pool.chains.conditions import names_in, parse_condition
from muster.pool.chains.extraction import parse_path
from muster.pool.chains.scope import ERROR, INDEX, ITEM, OUTPUT, PREVIOUS, AvailableNames
from muster.pool.chains.templates import Template, parse_template
from muster.text.document_tree import Place
from muster.text.json_documents import flaw_of
from muster.text.schemas.json_schema import schema_flaw

_MAX_NAME = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_INTERPRETER = re.compile(r"(?:ba|da|z|k|fi|a)?sh|python[0-9.]*|perl|ruby|node|php|env|xargs")
_CODE = re.compile(r"-[A-Za-z]*[ceEr]|--eval|--command|--print|-p")

_OF_PROMPTS = ("agent", "system", "model", "tools", "max_tokens", "budget_usd", "dispatch")

Flaws = Iterator[tuple[Place, str]]


def chain_flaws(chain: Chain, *, before: Mapping[str, frozenset[str]] | None = None) -> Flaws:
    """Yield everything that is wrong with a chain, each with its place; `before` are steps that are done already."""
    names = [step.name for step in chain.steps]
    if len(names) > MAX_STEPS:
        yield ("steps",), f"has more than {MAX_STEPS} steps"
    for name in chain.inputs:
        if not _VARIABLE.fullmatch(name):
            yield ("inputs", name), "the name of an input has only letters, digits, - and _, and begins with a letter"
    done = dict(before or {})
    for index, group in enumerate(chain.groups):
        for number, step in enumerate(group):
            place: Place = ("steps", index) if len(group) == 1 else ("steps", index, "parallel", number)
            if names.count(step.name) > 1:
                yield (*place, "name"), f"duplicate name of a step: {step.name}"
            words = {PREVIOUS} if done else set()
            available = AvailableNames(
                steps=done,
                later=frozenset(names) - set(done),
                inputs=frozenset(chain.inputs),
                words=frozenset(words),
            )
            yield from ((place + inside, flaw) for inside, flaw in _step_flaws(step, available))
        done |= {step.name: frozenset(step.extract) for step in group}


def name_flaw(name: str) -> str | None:
    """Return why a step cannot have a name; None when it can."""
    if not _NAME.fullmatch(name):
        return "the name of a step has only letters, digits, - and _, and begins with a letter or a digit"
    return f"a name can have at most {_MAX_NAME} characters" if len(name) > _MAX_NAME else None


def input_flaws(chain: Chain, given: Mapping[str, Json]) -> Iterator[FieldFlaw]:
    """Yield why a chain cannot be run with some inputs; a path is the name of an input."""
    known = f"its inputs are {', '.join(chain.inputs)}" if chain.inputs else "it has no inputs"
    for name in given:
        if name not in chain.inputs:
            yield FieldFlaw(
                path=name, message=f"unknown input {name!r}; {known}", code=FlawCode.UNKNOWN, by_itself=True
            )
    for name, wanted in chain.inputs.items():
        if wanted.required and given.get(name) in (None, ""):
            yield FieldFlaw(path=name, message=f"input {name!r} is missing", code=FlawCode.MISSING, by_itself=True)


def complete_input(chain: Chain, given: Mapping[str, Json]) -> dict[str, Json]:
    """Return the inputs of a run: what was given, and the defaults of the others."""
    return {name: given.get(name, wanted.default) for name, wanted in chain.inputs.items()}


def _step_flaws(step: ChainStep, available: AvailableNames) -> Flaws:
    if wrong := name_flaw(step.name):
        yield ("name",), wrong
    if bool(step.prompt.strip()) == step.is_command:
        yield ("prompt",), "a step has either a prompt or a command"
    if step.asks_agent and not step.agent:
        yield ("agent",), "no agent is named: write agent: NAME here, or at the top for all steps"
    for key in _OF_PROMPTS if not step.asks_agent else ():
        if getattr(step, key) not in (None, "", ()):
            yield (key,), "only for steps that ask an agent; this one runs a command"
    yield from _number_flaws(step)
    yield from _value_flaws(step)
    yield from _text_flaws(step, available)


def _number_flaws(step: ChainStep) -> Flaws:
    if not 0 <= step.retries <= MAX_RETRIES:
        yield ("retries",), f"must be from 0 to {MAX_RETRIES}"
    if not 0 <= step.backoff_secs <= MAX_BACKOFF:
        yield ("backoff_secs",), f"must be from 0 to {MAX_BACKOFF:g}"
    if step.timeout_secs is not None and not 0 < step.timeout_secs <= 604_800:
        yield ("timeout_secs",), "must be more than 0, and at most a week"
    if step.budget_usd is not None and not 0 < step.budget_usd <= MAX_USD:
        yield ("budget_usd",), "must be more than 0"
    if step.max_tokens is not None and step.max_tokens < 1:
        yield ("max_tokens",), "must be at least 1"
    if step.dispatch not in (None, *Mode):
        yield ("dispatch",), f"must be {MODES}"


def _value_flaws(step: ChainStep) -> Flaws:
    for name, path in step.extract.items():
        if not _VARIABLE.fullmatch(name) or name == OUTPUT:
            yield ("extract", name), f"a variable has only letters, digits, - and _, and is not called {OUTPUT}"
        yield from _refused(("extract", name), partial(parse_path, path))
    if step.schema is not None and (wrong := flaw_of(dict(step.schema)) or schema_flaw(step.schema)):
        yield ("schema",), f"not a valid JSON Schema: {wrong}"


def _text_flaws(step: ChainStep, available: AvailableNames) -> Flaws:
    yield from _condition_flaws(step.when, available)
    yield from _list_flaws(step.for_each, available)
    inside = _with(available, *((ITEM, INDEX) if step.for_each else ()))
    for key in ("prompt", "system"):
        yield from _template_flaws((key,), getattr(step, key), inside)
    yield from _template_flaws(("recovery",), step.recovery, _with(inside, ERROR))
    yield from _command_flaws("command", step.command, inside)
    yield from _command_flaws("check", step.check, _with(inside, OUTPUT))


def _with(available: AvailableNames, *words: str) -> AvailableNames:
    return AvailableNames(
        steps=available.steps, later=available.later, inputs=available.inputs, words=available.words | set(words)
    )


def _condition_flaws(text: str, available: AvailableNames) -> Flaws:
    yield from _refused(("when",), lambda: parse_condition(text) if text else None)
    try:
        names = list(names_in(parse_condition(text))) if text else []
    except BadArgument:
        return
    yield from ((("when",), wrong) for name in names if (wrong := available.flaw(name)))


def _list_flaws(text: str, available: AvailableNames) -> Flaws:
    if not text:
        return
    yield from _template_flaws(("for_each",), text, available)
    template = _read(text)
    if template is not None and template.only is None:
        yield ("for_each",), "must be one name and nothing else, such as {steps.plan.items}"


def _template_flaws(place: Place, text: str, available: AvailableNames) -> Flaws:
    yield from _refused(place, lambda: parse_template(text))
    template = _read(text)
    for name in dict.fromkeys(template.names) if template else ():
        if wrong := available.flaw(name):
            yield place, wrong


def _command_flaws(key: str, command: tuple[str, ...], available: AvailableNames) -> Flaws:
    for index, word in enumerate(command):
        place = (key, index)
        if not word or "\0" in word:
            yield place, "an argument is empty or contains a NUL character"
            continue
        yield from _template_flaws(place, word, available)
        template = _read(word)
        if template is None or not any(template.names):
            continue
        if index == 0:
            yield place, "must be a program; a value cannot name it"
        elif template.only is None:
            yield place, f"{word!r}: a name must be a separate argument; it is never split or passed to a shell"
        elif _INTERPRETER.fullmatch(PurePath(command[0]).name) and _CODE.fullmatch(command[index - 1]):
            remedy = '["sh", "-c", "printf %s \\"$1\\"", "sh", "{previous_output}"]'
            yield place, f"a value would be run as code after {command[index - 1]}; pass it as an argument: {remedy}"


def _read(text: str) -> Template | None:
    try:
        return parse_template(text)
    except BadArgument:
        return None


def _refused(place: Place, read: Callable[[], object]) -> Flaws:
    try:
        read()
    except BadArgument as error:
        yield place, error.message
