"""The suite workload: behavioural tests of agents. Cases are read in, asked, judged and scored; all of it is kept."""

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from muster.domain.canonical import Json
from muster.domain.suite import ANSWERS, environment_key
from muster.domain.verdict import CaseResult
from muster.engine.context import Context
from muster.engine.workload import workload
from muster.formats.answers import read_answers
from muster.formats.suite_spec import SuiteSpec, read_spec
from muster.workloads.suite_book import Book
from muster.workloads.suite_reading import read_in
from muster.workloads.suite_scoring import examine
from muster.workloads.suite_units import Unit, Units

PACKAGES = ("muster-ai", "genai-prices", "jsonpath-rfc9535", "jsonschema", "msgspec", "pydantic", "regex")


@workload("suite")
async def suite(ctx: Context, spec: Any) -> Json:
    """Run suites, and say how the cases ended."""
    wanted = read_spec(spec)
    snapshot = await read_in(ctx, wanted)
    await ctx.step(environment_key(wanted.tag), environment)
    answers = await _answers(ctx, wanted)
    units = Units(wanted, snapshot)
    await ctx.emit("suite/told", "suite.started", {"cases": snapshot.cases, "units": units.total})

    async def one(_: int, unit: Unit) -> CaseResult:
        return await examine(ctx, unit, wanted, answers)

    book = Book(ctx, wanted, units)
    try:
        async for result in ctx.map(one, units.all(ctx)):
            await book.enter(result)
        return await book.close()
    finally:
        await book.abandon()


def environment() -> Json:
    """Say what the answers were made and judged with."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "machine": platform.machine(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


async def _answers(ctx: Context, spec: SuiteSpec) -> Mapping[str, str] | None:
    """Read recorded answers, once: the file is not looked at again."""
    if spec.answers is None:
        return None
    path = Path(spec.answers)
    found: Mapping[str, str] = await ctx.step(ANSWERS, lambda: dict(read_answers(path)))
    return found
