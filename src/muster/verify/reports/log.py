"""The log of verifications: lines of JSON, one file a day.

There is a line for each agent in a wave (`"event": "agent"`), one for each wave (`"wave"`) and one for the whole run
(`"verification"`). `id` is never used for two different lines; `at` is when the thing ended, in UTC.
A run that stopped and was taken up again has a line for each time it stopped, and one for its end.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from muster.domain.errors import BadArgument
from muster.domain.run import TERMINAL
from muster.text.words import moment
from muster.verify.findings.journal import AgentReport, WaveReport
from muster.verify.reports.json_report import (
    agent_report_view,
    counts_view,
    facts_view,
    verification_cost_view,
    wave_view,
)
from muster.verify.reports.run import WavesRun
from muster.verify.reports.summary import VerifyReport

Line = Mapping[str, Any]

_LEFT_OUT = {"keys", "failures"}  # of an agent: they stand in the reports


def log_lines(waves: WavesRun, report: VerifyReport) -> tuple[Line, ...]:
    """Return the lines of a verification; the last one is that of the whole run."""
    lines = [line for wave in report.waves for line in _wave(waves, report, wave)]
    return (*lines, _whole(report))


def _wave(waves: WavesRun, report: VerifyReport, wave: WaveReport) -> Iterator[Line]:
    run, at = report.run.id, moment(wave.ended_at)
    for agent in wave.agents:
        yield {
            "id": f"{run}/wave/{wave.wave}/{agent.agent}",
            "event": "agent",
            "at": at,
            "run": run,
            "dispatch": _dispatch(waves, agent),
            **{name: value for name, value in agent_report_view(agent).builtins().items() if name not in _LEFT_OUT},
        }
    yield {"id": f"{run}/wave/{wave.wave}", "event": "wave", "at": at, "run": run, **wave_view(wave).builtins()}


def _whole(report: VerifyReport) -> Line:
    run = report.run
    # A run that can be resumed has not ended: what is told of it now is not the last word.
    stop = str(run.state) if run.state in TERMINAL else f"{run.state}/{run.epoch}"
    return {
        "id": f"{run.id}/{stop}",
        "event": "verification",
        "at": moment(_ended(report)),
        "run": run.id,
        "ok": report.ok,
        "verdict": report.verdict,
        "partial": report.partial,
        **{name: value for name, value in facts_view(run).builtins().items() if name not in ("id", "root")},
        **verification_cost_view(run.cost).builtins(),
        "counts": counts_view(report.counts).builtins(),
        "waves": {str(wave.wave): wave.passed for wave in report.waves},
        "not_started": list(report.not_started),
        "files": len(report.files),
        "unseen": len(report.unseen),
        "left_out": len(report.left_out),
        "redactions": report.redactions,
        "cleared": len(report.cleared),
    }


def _ended(report: VerifyReport) -> float:
    """Return when a run ended; of one that only stopped, the last known time."""
    run = report.run
    if run.ended_at is not None:
        return run.ended_at
    return max([run.started_at or run.created_at, *(wave.ended_at for wave in report.waves)])


def _dispatch(waves: WavesRun, agent: AgentReport) -> str | None:
    """Return how an agent is asked; nothing for a checker."""
    found = next((one for one in waves.spec.verifiers if (one.name, one.wave) == (agent.agent, agent.wave)), None)
    if found is None or found.command:
        return None
    return "live" if waves.spec.live else found.dispatch or str(waves.run.dispatch.mode)


def append_log(folder: Path, lines: Sequence[Line]) -> Path:
    """Append lines to the file of the day on which the run ended; those that stand in it already are left out."""
    path = folder / f"{lines[-1]['at'][:10]}.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _append(path, lines)
    except OSError as error:
        raise BadArgument(f"{path} cannot be written: {error.strerror}") from error
    return path


def _append(path: Path, lines: Sequence[Line]) -> None:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, 0o644), "rb") as file:
        known, torn = _known(file)
        fresh = [json.dumps(line) for line in lines if line["id"] not in known]
        if not fresh:
            return
        # In one write: others append to the same file.
        text = ("\n" if torn else "") + "\n".join(fresh) + "\n"
        if os.write(file.fileno(), text.encode("ascii")) != len(text):
            raise OSError(0, "only some of the lines could be written")


def _known(file: BinaryIO) -> tuple[frozenset[str], bool]:
    """Return the ids that stand in a file, and whether its last line was broken off."""
    known: set[str] = set()
    line = b"\n"
    for line in file:
        known.update(_id(line))
    return frozenset(known), not line.endswith(b"\n")


def _id(line: bytes) -> Iterator[str]:
    """Read the id of a line; one that is no line of ours has none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return
    if isinstance(found, dict) and isinstance(found.get("id"), str):
        yield found["id"]
