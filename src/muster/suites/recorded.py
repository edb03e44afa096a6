"""Recorded answers: scored instead of asking anybody, by the same rules as answers that are given now."""

import json
from collections.abc import Mapping, Sequence
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from muster.domain.advice import ArgumentAdvice
from muster.domain.call import Quality, Reply
from muster.domain.canonical import Json
from muster.domain.errors import BadFile, NotFound
from muster.suites.checks.tool_calls import quality_in
from muster.suites.format.names import nearest_name
from muster.suites.values.case import Case
from muster.suites.values.rules import ScoringRules
from muster.suites.values.verdict import Observation
from muster.text.document_tree import Unreadable
from muster.text.files import shown, whole_text
from muster.text.json_documents import decode, json_words

TOOL = "agent_response"
MAX_BYTES = 256_000_000
NOT_RECORDED = "not_recorded"
_NUMBERS = frozenset({"epoch", "turn"})
_PLACES = _NUMBERS | {"case_id"}
# What providers and tools say beside an answer: why it ended, and what went wrong.
_REASONS = frozenset({"finish_reason", "stop_reason", "finishReason", "stopReason"})
_WHOLE = frozenset({"", "stop", "end_turn", "stop_sequence", "completed", "complete", "eos", "end", "success", "done"})
_FAULTS = frozenset(
    {"error", "errors", "is_error", "isError", "refusal", "refused", "truncated", "incomplete", "timed_out"}
)
_SHOWN = 60  # characters

CaseAnswers = Mapping[str, str]  # by epoch and turn, as `place_of` spells them
RecordedAnswers = Mapping[str, CaseAnswers]  # by case


def place_of(epoch: int, turn: int) -> str:
    """Spell which answer to a case it is."""
    return f"{epoch}/{turn}"


ONLY = place_of(1, 1)


def answers_in(stored: Any) -> RecordedAnswers:
    """Return the answers of a run as it stores them; an older one stored one text for each case."""
    return {case: {ONLY: said} if isinstance(said, str) else said for case, said in dict(stored or {}).items()}


def recorded_turns(answers: CaseAnswers, epoch: int, rules: ScoringRules) -> tuple[str, ...]:
    """Return the answers of an epoch, turn by turn, up to the first that is missing."""
    if not rules.recorded_like_live:
        return (answers[ONLY],) if ONLY in answers else ()
    places = (place_of(epoch, turn) for turn in count(1))
    return tuple(answers[place] for place in takewhile(lambda place: place in answers, places))


def observe_recorded(case: Case, epoch: int, answers: CaseAnswers, rules: ScoringRules) -> Observation:
    """Return what was recorded for one epoch of a case as if it had been said now; a missing turn is an error."""
    said = recorded_turns(answers, epoch, rules)
    if not rules.recorded_like_live:
        return Observation(answers=said) if said else _missing("there is no recorded answer to this case")
    turns = 1 + len(case.follow_ups)
    if len(said) > turns:
        return _missing(f"there are recorded answers to {len(said)} turns, and the case has {turns}")
    if len(said) < turns:
        return _missing(_words(case, epoch, answers, len(said) + 1))
    last = max(_turns(answers, epoch))
    if rules.every_recorded_turn and last > turns:
        return _missing(f"there is a recorded answer to turn {last}, and the case has {turns}")
    return Observation(answers=said, quality=_quality(case, said, rules))


def _turns(answers: CaseAnswers, epoch: int) -> list[int]:
    """Return the turns of an epoch that have an answer."""
    prefix = place_of(epoch, 0)[:-1]
    return [int(place.removeprefix(prefix)) for place in answers if place.startswith(prefix)]


def _quality(case: Case, said: Sequence[str], rules: ScoringRules) -> Quality:
    """Return the quality of the first answer that is not good: it is not made good by what is said after it."""
    qualities = (quality_in(case, Reply(text=text), rules) for text in said)
    return next((quality for quality in qualities if quality is not Quality.GOOD), Quality.GOOD)


def _missing(message: str) -> Observation:
    return Observation(error={"code": NOT_RECORDED, "message": message})


def _words(case: Case, epoch: int, answers: CaseAnswers, turn: int) -> str:
    if not answers:
        return "there is no recorded answer to this case"
    of_turn = f" to turn {turn}" if case.follow_ups else ""
    return f"there is no recorded answer{of_turn} in epoch {epoch}: name turn and epoch beside its case_id"


def read_answers(path: Path, *, epochs: int) -> dict[str, dict[str, str]]:
    """Return the recorded answers by case, epoch and turn; entries for other tools are left out.

    Raises BadFile for an answer that says that it is none, or is not whole, and for one to an epoch that is not run.
    """
    file = shown(path)
    found: dict[str, dict[str, str]] = {}
    for index, entry in enumerate(_entries(path, file)):
        if not isinstance(entry, dict):
            raise BadFile(file, f"[{index}]: it must be an object")
        if entry.get("tool") != TOOL:
            continue
        case, place, answer = _answer(entry, index, file, epochs)
        if found.setdefault(case, {}).setdefault(place, answer) != answer:
            raise BadFile(file, f"[{index}]: {case} has another answer further up; name its turn, or its epoch")
    if not found:
        raise BadFile(file, f'contains no recorded answer: no entry with "tool": "{TOOL}"')
    return found


def _entries(path: Path, file: str) -> list[Any]:
    if not path.exists():
        raise NotFound(f"no such file: {path}")
    try:
        entries = decode(whole_text(path, MAX_BYTES))
    except Unreadable as error:
        raise BadFile(file, error.message, line=error.line) from None
    except json.JSONDecodeError as error:
        raise BadFile(file, f"not valid JSON: {json_words(error)}", line=error.lineno, column=error.colno) from None
    except (ValueError, RecursionError) as error:
        raise BadFile(file, f"this JSON cannot be read: {error}") from None
    if not isinstance(entries, list):
        raise BadFile(file, "recorded answers are a list at the top")
    return entries


def _answer(entry: Mapping[str, Json], index: int, file: str, epochs: int) -> tuple[str, str, str]:
    case = _inside(entry, "args_match", "case_id")
    answer = entry.get("response") if isinstance(entry.get("response"), str) else _inside(entry, "response", "content")
    for place, value in (("args_match.case_id", case), ("response.content", answer)):
        if not isinstance(value, str):
            raise BadFile(file, f"[{index}].{place}: it must be text")
    _require_places(entry, index, file)
    _require_whole(entry, index, file)
    epoch, turn = (_number(entry, name, index, file) for name in ("epoch", "turn"))
    if epoch > epochs:
        words = f"it is an answer to epoch {epoch}, and {epochs} {'is' if epochs == 1 else 'are'} run"
        raise BadFile(file, f"[{index}].args_match.epoch: {words}", suggestions=(ArgumentAdvice("epochs", str(epoch)),))
    return str(case), place_of(epoch, turn), str(answer)


def _require_places(entry: Mapping[str, Any], index: int, file: str) -> None:
    """Refuse a turn or an epoch that would be ignored: in the wrong place, or misspelt."""
    for name in entry:
        if near := nearest_name(name, _NUMBERS):
            raise BadFile(file, f"[{index}].{name}: {near} belongs into args_match, beside case_id")
    for name in entry["args_match"]:
        if name not in _PLACES and (near := nearest_name(name, _PLACES)):
            raise BadFile(file, f"[{index}].args_match.{name}: unknown field; did you mean {near}?")


def _require_whole(entry: Mapping[str, Json], index: int, file: str) -> None:
    """Refuse an answer that says that it failed, was refused or was cut off: as text alone it would look whole."""
    response = entry["response"] if isinstance(entry["response"], Mapping) else {}
    for place, said in ((f"[{index}]", entry), (f"[{index}].response", response)):
        for name, value in said.items():
            reason = name in _REASONS and isinstance(value, str) and value.casefold() not in _WHOLE
            if reason or (name in _FAULTS and value):
                words = f"it says {str(value)[:_SHOWN]!r}, so this is no whole answer; record it again, or leave it out"
                raise BadFile(file, f"{place}.{name}: {words}")


def _number(entry: Mapping[str, Any], name: str, index: int, file: str) -> int:
    value = entry["args_match"].get(name, 1)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BadFile(file, f"[{index}].args_match.{name}: it must be a whole number from 1")
    return value


def _inside(entry: Mapping[str, Json], outer: str, inner: str) -> Any:
    found = entry.get(outer)
    return found.get(inner) if isinstance(found, dict) else None
