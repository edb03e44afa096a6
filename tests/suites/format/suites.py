"""Suites for tests, written as files."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muster.suites.format.suite import Examination, examine, open_suite
from muster.suites.values.case import Case

HEAD = "schema_version: 1\nskill_or_agent: greeter\n"


def a_case(name: str = "one", **changes: Any) -> dict[str, Any]:
    """Make a case that is good."""
    found: dict[str, Any] = {
        "id": f"greeter/{name}",
        "input": {"messages": [{"role": "user", "content": "Hello"}]},
        "expected": {"output": [{"kind": "contains", "value": "Hello"}]},
    }
    return {**found, **changes}


def checked_by(*checks: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    return a_case(expected={"output": list(checks)}, **changes)


def judged_by(*items: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    return a_case(expected={"rubric": list(items)}, **changes)


def asking(text: str, **changes: Any) -> dict[str, Any]:
    return a_case(input={"messages": [{"role": "user", "content": text}]}, **changes)


def write_suite(folder: Path, *cases: Mapping[str, Any], name: str = "cases.yaml", **head: Any) -> Path:
    """Write a suite in JSON, which is YAML, with each case on a line of its own, the first on line 4."""
    top = {"schema_version": 1, "skill_or_agent": "greeter", **head}
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    keys = json.dumps(top, ensure_ascii=False)[1:-1]
    path = folder / name
    path.write_text(f'{{\n{keys},\n"cases": [\n{lines}\n]}}\n', encoding="utf-8")
    return path


def write(folder: Path, text: str | bytes, name: str = "cases.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def the_case(path: Path) -> Case:
    (found,) = open_suite(path).cases()
    return found


def the_flaw(path: Path) -> str:
    """Give the only flaw of a suite, without its place."""
    (flaw,) = examine(path).flaws
    return flaw.message


def flaws(path: Path) -> list[tuple[int | None, str, str]]:
    return [(flaw.line, flaw.case, flaw.message) for flaw in examine(path).flaws]


def sound(path: Path) -> Examination:
    found = examine(path)
    assert not found.flaws, [str(flaw) for flaw in found.flaws]
    return found
