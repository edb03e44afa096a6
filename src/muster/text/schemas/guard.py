"""Which JSON Schemas are plain, and the evaluation of all others in a process with limits.

A schema can make any evaluator work without end or eat the memory: by references, by patterns, by keywords that look at
all pairs.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar, TypeVarTuple

from muster.domain.canonical import Json
from muster.text.limited.allowance import CpuAllowance
from muster.text.limited.process import evaluate_elsewhere

Arguments = TypeVarTuple("Arguments")
Done = TypeVar("Done")

MAX_PLAIN_SCHEMA = 10_000  # bytes of a plain schema
MAX_STEPS = 5_000_000  # bytes of a plain schema times bytes of the value
MAX_WAITING = 4  # evaluations of one process of ours under way; others wait for them

_SAID = {"title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly", "format"}
_COMPARED = {"type", "enum", "const", "required", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
             "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}  # fmt: skip
_STEADY = re.compile(
    r"\^?(?:[\w \-/:,@#]|\\[dswDSW./]|\[\^?[\w\- ]+\]){1,100}\$?"
)  # repeats nothing, so it never tries again
_ONE_SCHEMA = {"items", "additionalProperties", "not"}
_SCHEMAS = {"anyOf", "oneOf", "allOf", "prefixItems"}


def is_plain(schema: Json) -> bool:
    """Return whether every part of a schema is applied at most once to every part of a value, by comparing it."""
    if not isinstance(schema, Mapping):
        return isinstance(schema, bool)
    waiting: list[Any] = [{name: part for name, part in schema.items() if name != "$schema"}]
    while waiting:
        one = waiting.pop()
        if isinstance(one, bool):
            continue
        if not isinstance(one, Mapping):
            return False
        for name, part in one.items():
            inner = _inner(name, part)
            if inner is None:
                return False
            waiting += inner
    return True


def _inner(name: str, part: Any) -> Iterable[Any] | None:
    """Return the schemas inside of a keyword that only compares; None for any other keyword."""
    if name == "properties" and isinstance(part, Mapping):
        return part.values()
    if name in _SCHEMAS and isinstance(part, list | tuple):
        return part
    if name in _ONE_SCHEMA:
        return (part,)
    steady = name == "pattern" and isinstance(part, str) and _STEADY.fullmatch(part)
    return () if steady or name in _SAID or name in _COMPARED else None


async def in_schema_thread(work: Callable[[*Arguments], Done], *arguments: *Arguments) -> Done:
    """Run work that may evaluate schemas or patterns in a thread that nothing else waits for."""
    return await asyncio.get_running_loop().run_in_executor(_threads(), work, *arguments)


def guarded_schema_flaw(schema: bytes, allowance: CpuAllowance) -> str | None:
    """Return why a JSON text is not a JSON Schema; raises TooSlow, or BadArgument when that cannot be known."""
    return _wrong({"schema": schema.decode()}, allowance)


def guarded_flaw(
    value: Json, schema: bytes, allowance: CpuAllowance, *, formats: bool = False, most: int = 1
) -> str | None:
    """Return what in a value does not fit a schema; raises TooSlow, or BadArgument when that cannot be known."""
    return _wrong({"schema": schema.decode(), "value": value, "formats": formats, "most": most}, allowance)


def _wrong(request: Mapping[str, Json], allowance: CpuAllowance) -> str | None:
    wrong: str | None = evaluate_elsewhere("the schema", request, allowance)["wrong"]
    return wrong


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_WAITING, thread_name_prefix="schemas")
