"""What else is different between two suite runs, told as notes: whoever reads a comparison must know."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from muster.domain.canonical import canonical
from muster.domain.run import RunState
from muster.reports.suite_run import SuiteRun

# What a spec says, and how it is called.
_SETTINGS = {
    "judge": "the judge",
    "judge_samples": "the samples of the judge",
    "evaluator": "the evaluator",
    "threshold": "the threshold",
    "epochs": "the number of epochs",
    "filter": "the filter",
    "tags": "the tags",
    "max_tokens": "max_tokens",
    "temperature": "the temperature",
    "seed": "the seed",
}


async def notes_on(a: SuiteRun, b: SuiteRun) -> tuple[str, ...]:
    """Say everything that is different but the answers."""
    if a.run.id == b.run.id:
        return tuple(await _unfinished("it", a))
    return (
        *await _unfinished("A", a),
        *await _unfinished("B", b),
        *await _cases(a, b),
        *_prompts(a, b),
        *_settings(a, b),
        *_versions(a, b),
    )


async def _unfinished(side: str, suite: SuiteRun) -> list[str]:
    if suite.run.state is RunState.COMPLETED:
        return []
    done = sum([1 async for _ in suite.results()])
    return [f"{side} is {suite.run.state}: only {done:,} results are there"]


async def _cases(a: SuiteRun, b: SuiteRun) -> list[str]:
    """Compare the cases themselves, when some suite is not the same."""
    if [_suite(info) for info in a.snapshot.suites] == [_suite(info) for info in b.snapshot.suites]:
        return []
    before, after = await _digests(a), await _digests(b)
    counts = {
        "new": len(after.keys() - before.keys()),
        "gone": len(before.keys() - after.keys()),
        "changed": sum(after[case] != digest for case, digest in before.items() if case in after),
    }
    told = [f"{number:,} {_noun(number)} {word}" for word, number in counts.items() if number]
    return [f"the suite changed: {', '.join(told)}"] if told else []


def _suite(info: Any) -> tuple[str, str]:
    return info.name, info.digest


def _noun(number: int) -> str:
    return "case" if number == 1 else "cases"


async def _digests(suite: SuiteRun) -> dict[str, bytes]:
    """Name each case by what it asks and expects, wherever it stands."""
    found = {}
    async for case in suite.cases():
        content = canonical(msgspec.to_builtins(replace(case, file="", line=0)))
        found[case.id] = hashlib.sha256(content).digest()[:8]
    return found


def _prompts(a: SuiteRun, b: SuiteRun) -> Iterator[str]:
    before, after = _prompt_texts(a), _prompt_texts(b)
    for name in before:
        if name in after and before[name] != after[name]:
            yield f"{name} changed"


def _prompt_texts(suite: SuiteRun) -> Mapping[str, str]:
    beside = {f"the prompt beside {info.name}": info.prompt or "" for info in suite.snapshot.suites}
    return beside | {f"the prompt {prompt.name}": prompt.text for prompt in suite.snapshot.prompts}


def _settings(a: SuiteRun, b: SuiteRun) -> Iterator[str]:
    for name, title in _SETTINGS.items():
        before, after = getattr(a.spec, name), getattr(b.spec, name)
        if before != after:
            yield f"{title}: {_shown(before)} in A, {_shown(after)} in B"


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _versions(a: SuiteRun, b: SuiteRun) -> Iterator[str]:
    before, after = _version(a), _version(b)
    if before != after:
        yield f"run by Muster {before or 'unknown'} in A, {after or 'unknown'} in B"


def _version(suite: SuiteRun) -> str:
    packages = suite.environment.get("packages")
    return str(packages.get("muster-ai") or "") if isinstance(packages, Mapping) else ""
