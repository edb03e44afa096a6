"""Orders of tasks and fan-outs: what was said to submit them becomes their specs and the terms of their runs."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TypedDict

from muster.domain.canonical import Json, JsonObject
from muster.domain.errors import BadArgument, NotFound
from muster.domain.order import given_by, shared_fields
from muster.pool.fan_out import FanOut, read_fan_out
from muster.pool.order import AgentSettings, AssignmentFields, FanOutOrder, TaskOrder, TaskRunOrder
from muster.pool.tasks import TaskSpec
from muster.text.json_documents import json_fault


class TaskRunTerms(TypedDict, total=False):
    """What a task is called, and how long it may take."""

    tags: Iterable[str]
    name: str | None
    timeout: float | None


class TaskTerms(TaskRunTerms, total=False):
    """The same, and whose session of the agent it goes on with."""

    continues: str | None


def ordered_spec(order: TaskOrder) -> TaskSpec:
    """Return the task that was ordered."""
    own: JsonObject = {"tags": order.slot_tags, "schema": _schema(order), "settings": _settings(order)}
    return TaskSpec(**{**shared_fields(order, TaskSpec), **own})


def ordered_terms(order: TaskOrder) -> TaskTerms:
    """Return the terms on which a task was ordered."""
    return {**run_terms(order), "continues": order.continues}


def run_terms(order: TaskRunOrder) -> TaskRunTerms:
    """Return the terms on which a task, or each of many, was ordered."""
    return {"tags": order.tags, "name": order.name, "timeout": order.time_limit}


def ordered_fan_out(order: FanOutOrder) -> FanOut:
    """Return the fan-out that was ordered; what the order says itself counts before what its file says."""
    own = given_by(AssignmentFields, order)
    if order.file is None:
        return FanOut(prompts=order.prompts, **own)
    usual = given_by(AssignmentFields, AssignmentFields())
    said = {name: value for name, value in own.items() if name not in usual or value != usual[name]}
    return replace(read_fan_out(order.file), **said)


def fan_out_specs(wanted: FanOut) -> tuple[TaskSpec, ...]:
    """Return the tasks of a fan-out, in the order of its prompts; raises for one that nobody can do."""
    return tuple(TaskSpec(prompt=prompt, **given_by(AssignmentFields, wanted)) for prompt in wanted.prompts)


def fan_out_terms(terms: TaskRunTerms, number: int) -> Iterator[TaskRunTerms]:
    """Yield the terms of each task of a fan-out: its name has its number."""
    name = terms.get("name")
    for place in range(1, number + 1):
        yield {**terms, "name": None if name is None else f"{name}-{place}"}


def _settings(order: TaskOrder) -> dict[str, Json]:
    given = {field.name: getattr(order, field.name) for field in fields(AgentSettings)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items() if value}


def _schema(order: TaskOrder) -> Mapping[str, Json] | None:
    return order.output_schema if order.schema_file is None else _read_schema(order.schema_file)


def _read_schema(path: Path) -> Mapping[str, Json]:
    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise NotFound(f"no such file: {path}") from error
    except OSError as error:
        raise BadArgument(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadArgument(f"{path} is not JSON: {json_fault(error)}") from error
    if not isinstance(schema, dict):
        raise BadArgument(f"{path} is not a JSON Schema")
    return schema
