"""What agents on this machine share: prompts as text, lines of JSON, tool use within limits, exit status. Pure."""

import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muster.domain.call import Message, Request
from muster.domain.canonical import Json
from muster.domain.errors import BadOutput, Paid
from muster.domain.money import Microdollars, from_usd
from muster.text.json_documents import flaw_of, parseable

MAX_CALLS = 10_000  # of one call
MAX_RESULT = 2_000  # characters of what a tool gave
MAX_NAME = 200  # characters of a name or an id
MAX_SESSION = 1_000  # characters of the name of a session
MAX_TEXT = 2_000  # characters of a text in the arguments
MAX_ARGUMENTS = 32 * 1_024  # bytes of all arguments of one use, as JSON
GRANTED = "granted_tools"  # the setting of a call that names tools which a person has granted
TOO_MANY = f"used more than {MAX_CALLS:,} tools"

_CUT = "_cut"  # the one argument that stands for those that are too long
_MAX_VALUES = MAX_ARGUMENTS // 2  # each takes two characters at least, with the comma after it
_JSON = json.JSONEncoder(ensure_ascii=False)


def kept_arguments(arguments: Mapping[str, Json]) -> Mapping[str, Any]:
    """Return the arguments of a use as they are kept: texts cut, and all of them when they are still too long."""
    if _holds_many(arguments) or flaw_of(arguments) is not None:
        return {_CUT: _beginning(arguments)}
    short: dict[str, Json] = _shortened(arguments)
    size = len(_JSON.encode(short).encode("utf-8", "surrogatepass"))
    return short if size <= MAX_ARGUMENTS else {_CUT: _beginning(short)}


def _holds_many(value: Json) -> bool:
    """Return whether there are more values than have a place; found out without a look at all of them."""
    waiting, seen = [value], 0
    while waiting and seen <= _MAX_VALUES:
        item = waiting.pop()
        inside = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        seen += len(inside)
        if seen <= _MAX_VALUES:
            waiting.extend(inside)
    return seen > _MAX_VALUES


def _shortened(value: Json) -> Any:
    """Cut the texts of a value that is not nested too deep."""
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, dict):
        return {name: _shortened(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_shortened(each) for each in value]
    return value


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _beginning(value: Json) -> str:
    """Spell a value, only as far as it is kept."""
    spelled = ""
    try:
        for part in _JSON.iterencode(value):
            spelled += part
            if len(spelled) > MAX_TEXT:
                break
    except RecursionError:
        return "(nested too deep to be shown)"
    return _cut(spelled)


def transcript_of(request: Request, *, system: bool = True) -> str:
    """Write a conversation as one text: the system prompt, a blank line, and the only message or all turns.

    With `system` false the system prompt is left out, for agents that have another place for it.
    """
    head = f"{request.system}\n\n" if system and request.system else ""
    messages = request.messages
    if len(messages) == 1:
        return head + "\n\n".join((_said(messages[0]), *inbox_of(request)))
    turns = (f"{message.role.capitalize()}: {_said(message)}" for message in messages)
    return head + "\n\n".join((*turns, *inbox_of(request)))


def _said(message: Message) -> str:
    uses = [f"[{call.name} {json.dumps(dict(call.arguments))}]" for call in message.tool_calls]
    return "\n".join([message.text, *uses] if message.text or not uses else uses)


def inbox_of(request: Request) -> list[str]:
    """Return what attempts before this one were told while they worked."""
    texts = request.volatile.get("inbox")
    return [text for text in texts if isinstance(text, str)] if isinstance(texts, list) else []


def mcp_config_of(request: Request) -> str | None:
    """Return the file that tells of the MCP server for this call."""
    return _text(request, "mcp_config")


def session_of(request: Request) -> str | None:
    """Return the session that a request continues."""
    return _text(request, "session")


def folder_of(request: Request, usual: Path) -> Path:
    """Return the working folder: that of the request, relative to the usual one."""
    folder = _text(request, "cwd")
    return usual if folder is None else usual / folder


def variables_of(request: Request) -> dict[str, str]:
    """Return the variables of a call: those that belong to the question, and those of the place it is answered at."""
    own = request.volatile.get("environment")
    local = {name: value for name, value in own.items() if isinstance(value, str)} if isinstance(own, Mapping) else {}
    return {**(request.environment or {}), **local}


def setting_of(request: Request, name: str) -> str | None:
    """Return a setting of this call that is a text."""
    value = (request.settings or {}).get(name)
    return value if isinstance(value, str) and value else None


def granted_of(request: Request) -> tuple[str, ...]:
    """Return the tools that a person has granted to this call, beside those that its agent may use anyway."""
    value = (request.settings or {}).get(GRANTED)
    return tuple(tool for tool in value if isinstance(tool, str) and tool) if isinstance(value, list) else ()


def budget_of(request: Request) -> Microdollars | None:
    """Return the most that this call may cost, where it says so itself."""
    value = request.volatile.get("budget_usd", (request.settings or {}).get("budget_usd"))
    return from_usd(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def _text(request: Request, name: str) -> str | None:
    value = request.volatile.get(name)
    return value if isinstance(value, str) and value else None


def retold(error: BadOutput, before: str = "", *, log: str = "", cost: int | None = None) -> BadOutput:
    """Return the same error with a prefix, the log, and the cost of the call unless it has one."""
    again = BadOutput(
        before + error.message,
        log=log or error.log,
        cost=error.cost if error.paid is Paid.YES else cost,
        imputed=error.imputed,
        suggestions=error.suggestions,
    )
    again.flaw, again.answer = error.flaw, error.answer
    return again


def exit_of(status: int) -> str:
    """Return what an exit status means: a code, or the signal that is its negative."""
    if status >= 0:
        return f"exited with code {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


class LineBuffer:
    """Puts lines together from chunks that are cut anywhere, even inside a character."""

    def __init__(self) -> None:
        self._open: list[bytes] = []
        self.waiting = 0  # bytes of a line that has not ended

    def feed(self, data: bytes) -> list[bytes]:
        """Take a chunk and give the lines that it ends."""
        *ended, rest = data.split(b"\n")
        if ended:
            ended[0] = b"".join((*self._open, ended[0]))
            self._open, self.waiting = [], 0
        if rest:
            self._open.append(rest)
            self.waiting += len(rest)
        return ended

    def rest(self) -> bytes:
        """Return the line that was not ended."""
        return b"".join(self._open)

    def end_of_rest(self, most: int) -> bytes:
        """Return the last bytes of the line that was not ended, however long that is."""
        taken, size = [], 0
        for chunk in reversed(self._open):
            taken.append(chunk)
            size += len(chunk)
            if size >= most:
                break
        return b"".join(reversed(taken))[-most:]

    def may_be_object(self) -> bool:
        """Return whether the line that was not ended begins as a JSON object does."""
        begun = next((chunk.lstrip() for chunk in self._open if not chunk.isspace()), b"")
        return begun.startswith(b"{")


def object_of(line: bytes) -> dict[str, Json] | None:
    """Read a line as a JSON object; None for any other line."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        found = json.loads(parseable(line))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
