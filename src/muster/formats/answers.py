"""Recorded answers: a JSON file that says what an agent once answered to each case."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muster.domain.errors import BadFile, NotFound
from muster.formats.flaw import Unreadable
from muster.formats.source import shown, whole_text

TOOL = "agent_response"
MOST_BYTES = 256_000_000


def read_answers(path: Path) -> Mapping[str, str]:
    """Give the recorded answers by case id; entries for other tools are left out."""
    file = shown(path)
    entries = _entries(path, file)
    found: dict[str, str] = {}
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise BadFile(file, f"[{index}]: it must be an object")
        if entry.get("tool") != TOOL:
            continue
        case, answer = _answer(entry, index, file)
        if found.setdefault(case, answer) != answer:
            raise BadFile(file, f"[{index}]: {case} has another answer further up")
    if not found:
        raise BadFile(file, f'there is no recorded answer in it: no entry with "tool": "{TOOL}"')
    return found


def _entries(path: Path, file: str) -> list[Any]:
    if not path.exists():
        raise NotFound(f"there is no {path}")
    try:
        entries = json.loads(whole_text(path, MOST_BYTES))
    except Unreadable as error:
        raise BadFile(file, error.message, line=error.line) from None
    except json.JSONDecodeError as error:
        raise BadFile(file, f"this is no JSON: {error.msg}", line=error.lineno, column=error.colno) from None
    except (ValueError, RecursionError) as error:
        raise BadFile(file, f"this is no JSON that can be read: {error}") from None
    if not isinstance(entries, list):
        raise BadFile(file, "recorded answers are a list at the top")
    return entries


def _answer(entry: Mapping[str, Any], index: int, file: str) -> tuple[str, str]:
    case = _inside(entry, "args_match", "case_id")
    answer = entry.get("response") if isinstance(entry.get("response"), str) else _inside(entry, "response", "content")
    for place, value in (("args_match.case_id", case), ("response.content", answer)):
        if not isinstance(value, str):
            raise BadFile(file, f"[{index}].{place}: it must be text")
    return str(case), str(answer)


def _inside(entry: Mapping[str, Any], outer: str, inner: str) -> Any:
    found = entry.get(outer)
    return found.get(inner) if isinstance(found, dict) else None
