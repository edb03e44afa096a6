"""What `muster ask` says at its end: the answer, how good it is, what it cost; or that it is still to come."""

import sys
from dataclasses import dataclass
from typing import Any

from muster.app.run_details import RunBatches
from muster.app.views.runs import reply_view, run_batches_view
from muster.cli.batch_portrait import batch_name, calls
from muster.cli.call_sheet import tokens_line, tool_line
from muster.cli.manner import Manner
from muster.cli.pooled import saving_words
from muster.cli.speech import answer, fail_with, note, quote_log, warn
from muster.domain.call import Reply
from muster.domain.money import Lane, show_usd, to_usd
from muster.domain.run import Run

WARNINGS = {
    "cut": "the answer was cut: it is as long as --max-tokens allows",
    "refused": "the agent refused to answer",
    "empty": "the answer is empty",
    "unfinished": (
        "nobody said that the answer is whole: its finish_reason is missing, an error, not known, "
        "or names tools that it did not call"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of a question."""

    run: Run
    reply: Reply | None  # None: it waits in a batch
    batches: RunBatches
    workers: int = 0


def conclude(manner: Manner, found: Answer, *, printed: bool) -> int:
    """Print what is left to print; a reply that is not good, or cost more than it may, makes the exit code 1."""
    if found.reply is None:
        return leave(manner, found.run, found.batches, found.workers)
    quality = _quality(found.reply)
    if manner.json:
        return _answer_json(manner, found, found.reply)
    if not printed:
        text = found.reply.text
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    if quality in WARNINGS:
        warn(f"warning: {WARNINGS[quality]}")
    if not manner.quiet:
        _tell_trace(found.reply)
    note(manner, _footer(found, found.reply))
    over = found.run.overdraft
    if over is not None:
        return fail_with(manner, over, 1)
    return 1 if quality in WARNINGS else 0


def _quality(reply: Reply) -> str:
    """Return the quality of a reply to a question, with which no tools are declared."""
    return str(reply.quality_given(()))


def _tell_trace(reply: Reply) -> None:
    """Say what an agent that is a program did besides answering."""
    for call in reply.tool_calls:
        warn(f"used {tool_line(call)}")
    if reply.trace is not None:
        quote_log(reply.trace.log)
        if reply.trace.note:
            warn(f"note: {reply.trace.note}")


def _answer_json(manner: Manner, found: Answer, reply: Reply) -> int:
    data, quality = _data(found, reply), _quality(reply)
    over = found.run.overdraft
    if over is not None:
        return fail_with(manner, over, 1, data)
    if quality not in WARNINGS:
        answer(manner, data, lambda console: None)
        return 0
    return fail_with(manner, {"code": quality, "message": WARNINGS[quality], "suggestions": []}, 1, data)


def _data(found: Answer, reply: Reply) -> dict[str, Any]:
    return {
        "run": found.run.id,
        "state": str(found.run.state),
        **reply_view(reply),
        "quality": _quality(reply),
        "cost_usd": to_usd(reply.cost),
        "uncertain_usd": to_usd(found.run.spent.uncertain),
        "seconds": round(reply.timings.shown, 3),
        "attempts": reply.attempt,
        "dispatch": str(found.run.dispatch.mode),
        **run_batches_view(found.batches),
    }


def _footer(found: Answer, reply: Reply) -> str:
    uncertain = found.run.spent.uncertain
    parts = [
        reply.model or str(found.run.spec["agent"]),
        tokens_line(reply),
        "" if reply.lane is Lane.UNCERTAIN else show_usd(reply.cost),
        "covered by a subscription" if reply.lane is Lane.IMPUTED else "",
        f"{show_usd(uncertain)} uncertain" if uncertain else "",
        saving_words(found.batches),
        f"{reply.timings.shown:.1f} s",
        f"run {found.run.id}",
    ]
    return " · ".join(part for part in parts if part)


def leave(manner: Manner, run: Run, found: RunBatches, workers: int) -> int:
    """Say where the answers will come from, and how to go on."""
    batches = found.under_way or found.batches
    ways = [f"muster runs resume {run.id}", *(f"muster batch watch {batch.id}" for batch in batches)]
    named = " and ".join(batch_name(batch) for batch in batches)
    lines = [f"run {run.id} waits for {calls(found.saving.parked)} in {named}"]
    lines += [f"go on with: {ways[0]}", *(f"look at it with: {way}" for way in ways[1:])]
    lines += ["a worker is there to go on with it too"] if workers else []
    data = {"run": run.id, "state": str(run.state), "dispatch": str(run.dispatch.mode), **run_batches_view(found)}
    told = "\n".join(lines)
    answer(manner, data | {"go_on": ways, "workers": workers}, lambda out: out.print(told, soft_wrap=True))
    return 0
