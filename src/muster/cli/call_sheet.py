"""One call in full: what was asked, what was answered, which tools were used, what was logged, what it cost."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from muster.cli.clean import clean
from muster.domain.call import Reply, ToolCall, Trace, Usage
from muster.domain.canonical import Json
from muster.domain.money import show_usd

if TYPE_CHECKING:
    from rich.console import Console

    from muster.app.run_details import CallDetails

LONGEST_ARGUMENTS = 200  # characters
LONGEST_RESULT = 200


def print_call(console: "Console", details: "CallDetails") -> None:
    """Write it for a person."""
    entry, reply = details.entry, details.entry.reply
    console.print(f"{clean(entry.key)}  {clean(entry.agent or '')}  {entry.state}", style="bold")
    _part(console, "asked", _asked(entry.request))
    if reply is not None:
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


def tool_line(call: ToolCall) -> str:
    """Put the use of a tool on one line."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    shown = f"{call.name}({_shortened(arguments, LONGEST_ARGUMENTS)})"
    return clean(shown.replace("\n", " ")) + (" failed" if call.failed else "")


def tokens_line(reply: Reply) -> str:
    """Say how many tokens went in and out; nothing for agents that do not count them."""
    return f"{reply.usage.all_input} in, {reply.usage.output} out" if reply.usage != Usage() else ""


def _used(call: ToolCall) -> str:
    """Say how a tool was used, and how what it gave begins."""
    given = " ".join((call.result or "").split())
    return tool_line(call) + (f" → {_shortened(given, LONGEST_RESULT)}" if given else "")


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "…"


def _figures(reply: Reply) -> str:
    trace = reply.trace or Trace()
    parts = [
        reply.model,
        tokens_line(reply),
        f"{trace.turns} turns" if trace.turns else "",
        f"{reply.timings.shown:.1f} s",
        f"session {trace.session}" if trace.session else "",
    ]
    return " · ".join(part for part in parts if part)


def _asked(request: Json) -> str:
    if not isinstance(request, Mapping):
        return ""
    parts = [f"[system] {request['system']}"] if request.get("system") else []
    parts += [f"[{message['role']}] {message['text']}" for message in request.get("messages", ())]
    return "\n".join(parts)


def _attempt_line(attempt: Any, told: Json) -> str:
    """Put an attempt on one line; why it failed is left out where that was told already."""
    over = ", budget exceeded" if attempt.cost > attempt.reserved else ""
    message = (attempt.error or {}).get("message", "")
    why = f": {message}" if message and message != told else ""
    cost = f"{show_usd(attempt.cost)} of {show_usd(attempt.reserved)} reserved, {attempt.lane}{over}"
    return clean(f"{attempt.n}  {attempt.state}, {cost}{why}")


def _part(console: "Console", title: str, text: str) -> None:
    if text.strip():
        console.print(title, style="dim")
        for line in text.rstrip("\n").split("\n"):
            console.print("  " + clean(line), soft_wrap=True)
