"""Runs, calls and attempts drawn for a terminal. Whatever models or users wrote is shown as plain text."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from rich.box import ROUNDED, SIMPLE_HEAD
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from muster.app.kinds import word_of
from muster.app.runs.details import CallDetails, RunBatches, RunDetails
from muster.app.views.calls import NO_THINKING, thought_of
from muster.app.views.verdicts import Tone, verdict_of
from muster.cli.people import MAX_TOLD, question_words
from muster.cli.terminal.batches import calls, standing
from muster.cli.terminal.costs import cost_columns
from muster.cli.terminal.output import clean
from muster.cli.terminal.runs import (
    COLOURS,
    batch_words,
    cut,
    event_line,
    flex_words,
    is_alone,
    run_cost,
    tokens_line,
    tool_line,
    ways_on,
)
from muster.cli.terminal.table import Column, fitted
from muster.cli.terminal.times import local, rough
from muster.domain.batch import ways_out
from muster.domain.call import Reply, ToolCall, Trace
from muster.domain.canonical import Json
from muster.domain.dispatch import Mode
from muster.domain.entry import Entry
from muster.domain.errors import AwaitsSignal, LeftWaiting
from muster.domain.ids import RunId
from muster.domain.money import show_usd, usd_format
from muster.domain.run import Run
from muster.text.words import count

if TYPE_CHECKING:
    from rich.console import Console


def print_details(console: "Console", details: RunDetails) -> None:
    """Write it for a person."""
    run = details.run
    console.print(run_panel(run, details.root, details.batches))
    for question in details.questions[:MAX_TOLD]:
        console.print(clean(question_words(question)), soft_wrap=True)
    if len(details.questions) > MAX_TOLD:
        console.print(f"… and {len(details.questions) - MAX_TOLD} more open questions: --json")
    if details.unused is not None and details.unused.repeated:
        console.print(Text(f"note: {clean(str(details.unused))}", style="yellow"), soft_wrap=True)
    if details.calls is not None:
        console.print(calls_table(details.calls, console.width))
        if details.calls_left_out:
            console.print(f"… and {details.calls_left_out} more calls; all of them are in: muster runs export {run.id}")
    if details.uncertain:
        console.print(attempts_table(details.uncertain))
    for event in details.events or ():
        console.print(clean(event_line(event)), soft_wrap=True)


RESULT_LINES = 16
BATCHES = 5


def run_panel(run: Run, root: RunId, pooled: RunBatches) -> Panel:
    """Draw one run: what it is, its money, its calls, what went wrong and how to go on."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in _facts(run, root, pooled):
        grid.add_row(label, value)
    title = Text(f"run {run.id}" + (f"  {clean(run.name)}" if run.name else ""), style="bold")
    parts: list[Any] = [grid]
    if run.error:
        parts += [Text(""), _error(run)]
    if run.result is not None:
        parts += [Text(""), Text("result", style="dim"), Text(_shortened(run.result))]
    return Panel(
        Group(*parts), title=title, title_align="left", box=ROUNDED, border_style=COLOURS[run.state], expand=False
    )


def _facts(run: Run, root: RunId, pooled: RunBatches) -> list[tuple[str, Text]]:
    state = Text(run.state, style=f"bold {COLOURS[run.state]}")
    if run.ended_reason and run.ended_reason not in (run.state, "done", LeftWaiting.code, AwaitsSignal.code):
        state.append(f"  ({clean(run.ended_reason)})", style="default")
    verdict = _verdict(run)
    kind = Text(clean(word_of(run.workload)))
    found = [("state", state), *([("verdict", verdict)] if verdict else []), ("kind", kind)]
    if run.is_driven:
        found.append(("driver", Text(str(run.lease.driver))))
    if run.origin is not None:
        fork = f", from {clean(run.origin.fork_key)}" if run.origin.fork_key else ""
        found.append(("comes from", Text(f"run {run.origin.run} ({run.origin.reuse}{fork})")))
    if run.continued_by is not None:
        found.append(("continued as", Text(f"run {run.continued_by}")))
    found += [("cost", _money(run)), ("calls", _calls(run, pooled)), ("time", _time(run))]
    if run.dispatch.mode is Mode.BATCH or pooled.batches:
        found.append(("batches", _batches(pooled)))
    if pooled.saving.flex_calls:
        found.append(("flex", Text(f"{calls(pooled.saving.flex_calls)}, {flex_words(pooled.saving)}")))
    return [*found, ("next", Text("\n".join(_ways_on(run, root, pooled)), style="cyan"))]


def _batches(pooled: RunBatches) -> Text:
    if not pooled.batches:
        return Text("none yet")
    # What is in the way comes first: a run can have hundreds.
    listed = sorted(pooled.batches, key=lambda batch: batch.gets_on)[:BATCHES]
    lines = [
        clean(f"{batch.id}  {standing(batch)}, {calls(batch.requests)}{'' if batch.gets_on else f': {batch.note}'}")
        for batch in listed
    ]
    lines += [f"… and {len(pooled.batches) - BATCHES} more: --json"] if len(pooled.batches) > BATCHES else []
    booked = not pooled.saving.parked or pooled.saving.live_cost
    return Text("\n".join([*lines, *([batch_words(pooled)] if booked else [])]))


def _ways_on(run: Run, root: RunId, pooled: RunBatches) -> tuple[str, ...]:
    left_alone = pooled.under_way if not run.is_driven else ()
    out = dict.fromkeys(way for batch in pooled.stalled for way in ways_out(batch))
    return (*ways_on(run, root), *(f"muster batch watch {batch.id}" for batch in left_alone[:1]), *out)


def _money(run: Run) -> Text:
    text = Text(run_cost(run), style="yellow" if run.total.uncertain else "")
    if run.spent.reserved:
        text.append(f", {show_usd(run.spent.reserved)} reserved for calls under way")
    return text if run.cap is not None else text.append("  (no budget)", style="dim")


def _calls(run: Run, pooled: RunBatches) -> Text:
    counts = run.calls
    text = Text(f"{counts.done} of {counts.total} done")
    if counts.reused:
        text.append(f", {counts.reused} of them reused")
    if pooled.saving.parked:
        text.append(f", {pooled.saving.parked} waiting in batches", style="blue")
    if counts.failed:
        text.append(f", {counts.failed} failed", style="red")
    if counts.uncertain:
        text.append(f", {count(counts.uncertain, 'attempt')} uncertain", style="yellow")
    return text


def _time(run: Run) -> Text:
    ended = f", ended {local(run.ended_at)}" if run.ended_at else ""
    started = f"started {local(run.started_at)}" if run.started_at else f"made {local(run.created_at)}"
    seconds = f"  ({run.ended_at - run.started_at:.1f} s)" if run.ended_at and run.started_at else ""
    return Text(started + ended + seconds)


def _error(run: Run) -> Text:
    error = dict(run.error or {})
    text = Text(clean(str(error.get("message", "failed"))), style="red")
    for suggestion in error.get("suggestions") or ():
        text.append(f"\n  {clean(str(suggestion))}", style="default")
    if error.get("traceback"):
        text.append("\n" + clean(str(error["traceback"])).rstrip(), style="dim")
    return text


def _shortened(result: Any) -> str:
    if isinstance(result, dict) and isinstance(result.get("text"), str):
        text = result["text"]
    else:
        text = json.dumps(result, indent=2, ensure_ascii=False)
    lines = clean(text).splitlines()
    more = [f"… and {len(lines) - RESULT_LINES} more lines: --json"] if len(lines) > RESULT_LINES else []
    return "\n".join([*lines[:RESULT_LINES], *more])


WIDE, NARROW = 28, 12  # columns for what folds
TONES = {Tone.GOOD: "green", Tone.BAD: "red", Tone.PLAIN: "default"}
RUNS_LEAST_MISSED = ("age", "done", "budget", "imputed")
CALLS_LEAST_MISSED = ("quality", "attempts", "time", "agent")


class AttemptRow(Protocol):
    """One attempt of a call, as it is stored."""

    @property
    def key(self) -> str: ...  # noqa: D102
    @property
    def n(self) -> int: ...  # noqa: D102
    @property
    def cost(self) -> int: ...  # noqa: D102
    @property
    def error(self) -> Mapping[str, Json] | None: ...  # noqa: D102


def runs_table(runs: Sequence[Run], now: float, width: int) -> Table:
    """Draw runs, the newest first; what there is no room for is left out, but never ids and costs."""
    columns = [
        Column("run", [run.id for run in runs], right=False),
        Column("what", [_what(run) for run in runs], right=False, folds=True, least=NARROW),
        Column("state", [Text(run.state, style=COLOURS[run.state]) for run in runs], right=False),
        *_verdicts(runs),
        Column("done", [f"{run.calls.done}/{run.calls.total}" if run.calls.total else "" for run in runs]),
        *cost_columns([run.cost for run in runs], ["" if is_alone(run) else " in all" for run in runs]),
        Column("age", [rough(now - run.created_at) for run in runs]),
    ]
    return fitted(columns, RUNS_LEAST_MISSED, width)


def _verdicts(runs: Sequence[Run]) -> list[Column]:
    """Return the column of what runs came to, if any came to something."""
    found = [_verdict(run) for run in runs]
    return [Column("verdict", found, right=False, folds=True, least=NARROW)] if any(found) else []


def _verdict(run: Run) -> Text:
    verdict = verdict_of(run)
    return Text("") if verdict is None else Text(verdict.words, style=TONES[verdict.tone])


def _what(run: Run) -> Text:
    text = Text(clean(word_of(run.workload))).append(f" {clean(run.name)}" if run.name else "", style="bold")
    return text if run.continued_by is None else text.append(f" continued as {run.continued_by}", style="dim")


def calls_table(entries: Sequence[Entry], width: int) -> Table:
    """Draw calls in the order they were made; what there is no room for is left out, but never keys and costs."""
    replies = [entry.reply for entry in entries]
    paid = [None if entry.reused_from else reply for entry, reply in zip(entries, replies, strict=True)]
    usd = usd_format(*(reply.cost for reply in paid if reply is not None))
    columns = [
        Column("key", [Text(clean(entry.key)) for entry in entries], right=False, folds=True, least=WIDE),
        Column("agent", [Text(clean(entry.agent or "")) for entry in entries], right=False, folds=True, least=NARROW),
        Column("state", [_state(entry) for entry in entries], right=False, folds=True, least=NARROW),
        Column("attempts", ["reused" if entry.reused_from else str(entry.attempts) for entry in entries]),
        Column("quality", ["" if reply is None else str(reply.quality) for reply in replies], right=False),
        Column("cost", ["" if reply is None else usd(reply.cost) for reply in paid]),
        Column("time", ["" if reply is None else f"{reply.timings.shown:.1f} s" for reply in replies]),
    ]
    return fitted(columns, CALLS_LEAST_MISSED, width)


def _state(entry: Entry) -> Text:
    colour = {"done": "green", "failed": "red"}.get(entry.state, "yellow")
    why = f": {entry.error.get('code')}" if entry.error else ""
    return Text(f"{entry.state}{why}", style=colour)


def attempts_table(attempts: Sequence[AttemptRow]) -> Table:
    """Draw attempts whose outcome is unknown, with the most they can have cost."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title="outcome unknown", title_justify="left", title_style="yellow")
    table.add_column("key", overflow="fold")
    table.add_column("attempt", justify="right", no_wrap=True)
    table.add_column("at most", justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for attempt in attempts:
        why = str((attempt.error or {}).get("message", ""))
        table.add_row(Text(clean(attempt.key)), str(attempt.n), show_usd(attempt.cost), Text(clean(why)))
    return table


MAX_RESULT = 200  # characters


def print_call(console: "Console", details: CallDetails, *, thinking: bool = False) -> None:
    """Write it for a person."""
    entry, reply = details.entry, details.entry.reply
    console.print(f"{clean(entry.key)}  {clean(entry.agent or '')}  {entry.state}", style="bold")
    _part(console, "asked", _asked(entry.request))
    if reply is not None:
        _part(console, "thought", thought_of(reply) or NO_THINKING if thinking else "")
        _part(console, "tools", "\n".join(map(_used, reply.tool_calls)))
        _part(console, "answered", reply.text)
        _part(console, "data", "" if reply.data is None else json.dumps(reply.data, ensure_ascii=False))
        _part(console, "no data", reply.data_error)
        _part(console, "figures", _figures(reply))
        _part(console, "log", reply.trace.log if reply.trace else "")
        _part(console, "note", reply.trace.note if reply.trace else "")
    if entry.error is not None:
        _part(console, "error", str(entry.error.get("message", "")))
        _part(console, "log", str(entry.error.get("log", "")))
    told = (entry.error or {}).get("message")
    _part(console, "attempts", "\n".join(_attempt_line(attempt, told) for attempt in details.attempts))


def _used(call: ToolCall) -> str:
    """Return how a tool was used, and how what it gave begins."""
    given = " ".join((call.result or "").split())
    return tool_line(call) + (f" → {cut(given, MAX_RESULT)}" if given else "")


def _figures(reply: Reply) -> str:
    trace = reply.trace or Trace()
    parts = [
        reply.model,
        tokens_line(reply),
        count(trace.turns, "turn") if trace.turns else "",
        f"{reply.timings.shown:.1f} s",
        f"session {trace.session}" if trace.session else "",
    ]
    return " · ".join(part for part in parts if part)


def _asked(request: Any) -> str:
    if not isinstance(request, Mapping):
        return ""
    parts = [f"[system] {request['system']}"] if request.get("system") else []
    for message in request.get("messages", ()):
        parts += [f"[{message['role']}] {message['text']}", *_shown(message.get("content"))]
    return "\n".join(parts)


def _shown(content: Json) -> list[str]:
    """Return a line for each image and document of a message."""
    parts = content if isinstance(content, list) else []
    return [f"(shows {one['kind']} {one.get('name') or one['digest']})" for one in parts if isinstance(one, dict)]


def _attempt_line(attempt: Any, told: Json) -> str:
    """Put an attempt on one line; why it failed is left out where that was told already."""
    over = ", budget exceeded" if attempt.cost > attempt.reserved else ""
    message = (attempt.error or {}).get("message", "")
    why = f": {message}" if message and message != told else ""
    usd = usd_format(attempt.cost, attempt.reserved)
    cost = f"{usd(attempt.cost)} of {usd(attempt.reserved)} reserved, {attempt.lane}{over}"
    return clean(f"{attempt.n}  {attempt.state}, {cost}{why}")


def _part(console: "Console", title: str, text: str) -> None:
    if text.strip():
        console.print(title, style="dim")
        for line in text.rstrip("\n").split("\n"):
            console.print("  " + clean(line), soft_wrap=True)
