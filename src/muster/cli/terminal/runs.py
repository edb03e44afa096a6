"""A run, its replies and its events in a few words for people."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from muster.app.kinds import kind_of
from muster.app.runs.details import RunBatches
from muster.app.runs.shown import shown_event
from muster.cli.terminal.batches import money_words
from muster.cli.terminal.output import clean
from muster.domain.batch import Saving
from muster.domain.call import Reply, ToolCall, Usage
from muster.domain.entry import Event
from muster.domain.errors import after_run, resume_command, state_verb
from muster.domain.ids import RunId
from muster.domain.money import show_usd
from muster.domain.run import Run, RunState
from muster.text.words import one_line

MAX_ARGUMENTS = 200  # characters

COLOURS: Mapping[RunState, str] = {
    RunState.QUEUED: "cyan",
    RunState.RUNNING: "blue",
    RunState.WAITING: "blue",
    RunState.INTERRUPTED: "yellow",
    RunState.COMPLETED: "green",
    RunState.FAILED: "red",
    RunState.CANCELED: "magenta",
    RunState.TIMEOUT: "red",
}

MAX_ARGUMENTS = 200  # characters


def event_line(event: Event) -> str:
    """Put an event on one line."""
    data: Mapping[str, Any] = shown_event(event).data
    names = ["key", "batch", "quality", "reason", "driver"]
    if event.kind != "batch.progress":  # else it is the reason of an older step
        names.insert(2, "why")
    if event.kind == "call.asked":
        names += ["agent", "read_with"]
    parts = [str(data[name]) for name in names if data.get(name)]
    if data.get("cost"):
        parts.append(show_usd(int(data["cost"])))
    if event.kind.startswith("council."):
        parts = _council_parts(data)
    elif event.kind.startswith("battle."):
        parts = _battle_parts(data)
    error = data.get("error")
    if isinstance(error, Mapping):
        parts.append(str(error.get("message", "")))
    return f"{datetime.fromtimestamp(event.at).astimezone():%H:%M:%S}  {event.kind:<15} {'  '.join(parts)}".rstrip()


def _council_parts(data: Mapping[str, Any]) -> list[str]:
    """Return what an event of a council says."""
    where = " ".join(str(data[name]) for name in ("round", "phase") if data.get(name))
    parts = [f"round {where}" if data.get("round") else where]
    parts += [str(data[name]) for name in ("agent", "winner", "cause", "reason", "detail", "text") if data.get(name)]
    if "support" in data:
        parts += [f"{name} {value:+.3f}" for name, value in data["support"].items()]
    return [part for part in parts if part]


def _battle_parts(data: Mapping[str, Any]) -> list[str]:
    """Return what an event of a battle says, on one line."""
    if "content" in data:
        return [f"{data['seq']} {data['role']}:", one_line(str(data["content"]), MAX_ARGUMENTS)]
    sure = "" if data.get("confidence") is None else f"({float(data['confidence']):.2f})"
    said = [f"turn {data['turn']}", f"{data['source']}:", str(data["verdict"]), sure, str(data.get("reason") or "")]
    return [one_line(part, MAX_ARGUMENTS) for part in said if part]


def summary(run: Run) -> str:
    """Return on one line what became of a run."""
    name = f" ({run.name})" if run.name else ""
    reused = f", {run.calls.reused} of them reused" if run.calls.reused else ""
    failed = f", {run.calls.failed} failed" if run.calls.failed else ""
    why = after_run(run.id, str(run.error["message"])) if run.error and "message" in run.error else ""
    done = "1 call" if run.calls.done == 1 else f"{run.calls.done} calls"
    return f"run {run.id}{name} {state_verb(run.state)}: {done} done{reused}{failed}, {run_cost(run)}{why}"


def ways_on(run: Run, root: RunId) -> tuple[str, ...]:
    """Return what can be done next with a run; a child is continued by the run at the top."""
    if run.is_driven:
        return (f"muster runs watch {run.id}", f"muster runs cancel {run.id}")
    if kind_of(run).in_slot:
        return (f"muster task result {run.id}", "muster task --help")
    if run.continued_by is not None:
        return (f"muster runs show {run.continued_by}",)
    if run.parent is not None and run.state is not RunState.COMPLETED:
        return (f"muster runs resume {root}   (which started it, and continues it)",)
    match run.state:
        case RunState.QUEUED:
            return (f"muster runs resume {run.id}", "or start `muster worker`, if it was submitted")
        case RunState.INTERRUPTED | RunState.WAITING | RunState.RUNNING:
            return (f"muster runs resume {run.id}",)
        case RunState.COMPLETED:
            return (f"muster runs export {run.id} -o FILE", f"muster runs fork {run.id} --from KEY")
    return (f"{resume_command(run.id, run.ended_reason, run.error)}   (a new run that reuses every reply)",)


def batch_words(found: RunBatches) -> str:
    """Return what the batches of a run cost, in words; nothing when there are none."""
    return money_words(found.saving.cost, found.saving.live_cost) if found.batches else ""


def flex_words(saving: Saving) -> str:
    """Return what the tier flex cost, in words; nothing when it served no call."""
    return money_words(saving.flex_cost, saving.flex_live_cost, "flex") if saving.flex_calls else ""


def saving_words(found: RunBatches) -> str:
    """Return what the batches and the calls in the tier flex of a run cost, in words."""
    return "; ".join(filter(None, (batch_words(found), flex_words(found.saving))))


def new_run_words(cap: int | None) -> str:
    """Return that what an earlier run spent does not count in a run that is not resumed."""
    return "a new run " + ("without a budget" if cap is None else f"with a budget of its own ({show_usd(cap)})")


def tool_line(call: ToolCall) -> str:
    """Put the use of a tool on one line."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    shown = f"{call.name}({cut(arguments, MAX_ARGUMENTS)})"
    return clean(shown.replace("\n", " ")) + (" failed" if call.failed else "")


def tokens_line(reply: Reply) -> str:
    """Return how many tokens went in and out; nothing for agents that do not count them."""
    if reply.usage == Usage():
        return ""
    thought = f", {reply.usage.thinking} of it thinking" if reply.usage.thinking else ""
    return f"{reply.usage.all_input} in, {reply.usage.output} out{thought}"


def cut(text: str, most: int) -> str:
    """Return a text, or its beginning when it is longer than so many characters."""
    return text if len(text) <= most else text[:most] + "…"


def run_cost(run: Run) -> str:
    """Return what a run has cost, of which budget; of one that is continued or continues others, what is its own."""
    return f"{run.cost}" if is_alone(run) else f"{run.cost} in all, {run.own_cost} of it by this run"


def is_alone(run: Run) -> bool:
    """Return whether what a run has cost is all that its lineage has cost."""
    return run.spent.settled == run.total.settled
