"""Plays the steps of a script, like a CLI agent that streams JSON lines, with tools that are real.

Read, Write and Edit are confined to the folder it works in; a tool `mcp__SERVER__TOOL` is called at the MCP server that
it was told of; any other tool gives what the script says.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from muster.sim.cli_agent import behaviors
from muster.sim.cli_agent.script import Step
from muster.sim.cli_agent.session import CallLog, LineWriter, SessionMemory, pieces

_NAMES = ["Read", "Write", "Edit", "Bash", "Grep"]
_PLACE = re.compile(r"\{(prompt|model|session|turns|result|message)\}")
_BYTES_PER_TOKEN = 4


class ToolOutcome(NamedTuple):
    """What a tool gave."""

    text: str
    failed: bool = False


class PlayedCall(NamedTuple):
    """What is played, and for whom."""

    prompt: str
    steps: Sequence[Step]
    session: str
    model: str
    budget: float | None  # dollars; looked at after the turn, as CLI agents do
    before: int  # turns that the session had
    allowed: Sequence[str] = ()  # tools that it need not ask for
    mcp_config: str | None = None  # the file that tells of MCP servers


class Player:
    """Plays one call from its first line to its result."""

    def __init__(self, call: PlayedCall, writer: LineWriter, memory: SessionMemory, audit: CallLog) -> None:
        self._call, self._writer, self._memory, self._audit = call, writer, memory, audit
        self._began = time.monotonic()
        self._said = ""
        self._written = 0
        self._uses = 0
        self._given = ""  # by the last tool
        self._heard = ""  # the last message
        self._turns: int | None = None
        self._cost = 0.0
        self._answer: str | None = None
        self._data: Any = None
        self._error: Mapping[str, Any] | None = None
        self._stays = False

    def run(self) -> int:
        """Play everything, and give the exit code."""
        self._audit.note("start")
        init = {"model": self._call.model, "cwd": os.getcwd(), "tools": _NAMES}  # noqa: PTH109
        self._write_line("system", subtype="init", **init)
        self._play(self._call.steps)
        return self._finish()

    def _play(self, steps: Sequence[Step]) -> None:
        for step in steps:
            [(name, value)] = step.items()
            ACTIONS[name](self, self._fill(value))

    def _write_line(self, kind: str, **rest: Any) -> None:
        self._writer.line({"type": kind, "session_id": self._call.session, **rest})

    def _fill(self, value: Any) -> Any:
        """Put the prompt and the like into the texts of a step, once: what is put in is not looked at again."""
        if isinstance(value, str):
            return _PLACE.sub(lambda place: self._names[place[1]], value)
        if isinstance(value, dict):
            # Steps inside a step are filled when they are played.
            return {name: each if name == "meanwhile" else self._fill(each) for name, each in value.items()}
        return [self._fill(each) for each in value] if isinstance(value, list) else value

    @property
    def _names(self) -> dict[str, str]:
        call = self._call
        return {
            "prompt": call.prompt,
            "model": call.model,
            "session": call.session,
            "turns": str(call.before),
            "result": self._given,
            "message": self._heard,
        }

    def _say(self, text: str) -> None:
        for piece in pieces(text):
            delta = {"type": "text_delta", "text": piece}
            self._write_line("stream_event", event={"type": "content_block_delta", "index": 0, "delta": delta})
        self._write_message([{"type": "text", "text": text}])
        self._said = text
        self._written += len(text.encode("utf-8", "backslashreplace"))

    def _think(self, text: str) -> None:
        self._write_message([{"type": "thinking", "thinking": text}])

    def _write_message(self, content: list[Mapping[str, Any]]) -> None:
        message = {"role": "assistant", "model": self._call.model, "content": content}
        self._write_line("assistant", message=message)

    def _tool(self, tool: Mapping[str, Any]) -> None:
        self._tools([tool])

    def _tools(self, used: list[Mapping[str, Any]]) -> None:
        ids = self._begin(used)
        for tool in used:
            self._play(tool.get("meanwhile", ()))
        self._end(ids, [use(tool, tool.get("input", {}), self._call.mcp_config) for tool in used])

    def _begin(self, used: list[Mapping[str, Any]]) -> list[str]:
        ids = [f"toolu_{self._uses + number:02d}" for number in range(1, len(used) + 1)]
        self._uses += len(used)
        self._write_message(
            [
                {"type": "tool_use", "id": id_, "name": tool["name"], "input": tool.get("input", {})}
                for id_, tool in zip(ids, used, strict=True)
            ]
        )
        return ids

    def _end(self, ids: list[str], outcomes: list[ToolOutcome]) -> None:
        self._given = outcomes[-1].text if outcomes else ""
        content = [
            {"type": "tool_result", "tool_use_id": id_, "content": outcome.text, "is_error": outcome.failed}
            for id_, outcome in zip(ids, outcomes, strict=True)
        ]
        self._write_line("user", message={"role": "user", "content": content})

    def _ask_permission(self, asked: str | Mapping[str, Any]) -> None:
        tool: Mapping[str, Any] = {"name": asked} if isinstance(asked, str) else asked
        if tool["name"] in self._call.allowed:
            self._tool(tool)
            return
        self._memory.keep(self._call.session, self._call.before)  # whoever is asked may end it, and resume it later
        ids = self._begin([tool])
        given = tool.get("input", {})
        request = {"subtype": "can_use_tool", "tool_name": tool["name"], "input": given}
        self._write_line("control_request", request_id=f"permission_{ids[0]}", request=request)
        refusal = _refusal()
        outcome = use(tool, given, self._call.mcp_config) if refusal is None else ToolOutcome(refusal, failed=True)
        self._end(ids, [outcome])

    def _hear(self) -> None:
        """Take in a message: a line like `{"type": "user", "uuid": …, "message": {"content": …}}`."""
        line = sys.stdin.buffer.readline()
        if not line:
            behaviors.hang()  # nobody will say anything
        heard = json.loads(line)
        self._heard = str(heard["message"]["content"])
        self._write_line("user", message=heard["message"], uuid=heard["uuid"], isReplay=True)

    def _crash(self, how: int | Mapping[str, Any]) -> None:
        how = {"code": how} if isinstance(how, int) else how
        self._writer.write(str(how.get("partial", "")).encode())
        behaviors.die(how)

    def _children(self, children: int | Mapping[str, Any]) -> None:
        children = {"count": children} if isinstance(children, int) else children
        behaviors.start_children(
            children.get("count", 1),
            escape=children.get("escape", False),
            hold_output=children.get("hold_output", False),
        )

    def _noise(self, line: str | Mapping[str, Any]) -> None:
        line = {"text": line} if isinstance(line, str) else line
        if line.get("to") == "stderr":
            os.write(2, behaviors.noise(line))
        else:
            self._writer.write(behaviors.noise(line))

    def _fail(self, error: str | Mapping[str, Any]) -> None:
        self._error = {"text": error} if isinstance(error, str) else error

    def _set_cost(self, dollars: float) -> None:
        self._cost = dollars

    def _set_turns(self, turns: int) -> None:
        self._turns = turns

    def _set_answer(self, text: str) -> None:
        self._answer = text

    def _set_data(self, data: Any) -> None:
        self._data = data

    def _stay(self) -> None:
        self._stays = True

    def _finish(self) -> int:
        """Write down that it is finished before it is told: whoever has the answer finds it in the audit."""
        turns = self._turns if self._turns is not None else 1 + self._uses
        self._memory.keep(self._call.session, self._call.before + turns)
        self._audit.note("finish")
        result = self._result(turns)
        self._write_line("result", **result)
        if self._stays:
            behaviors.hang()
        return 1 if result["is_error"] else 0

    def _result(self, turns: int) -> dict[str, Any]:
        failed = self._failure()
        answer = self._said if self._answer is None else self._answer
        found = {
            "subtype": failed.get("subtype", "error_during_execution") if failed else "success",
            "is_error": failed is not None,
            "result": failed.get("text", "") if failed else answer,
            "num_turns": turns,
            "session_turns": self._call.before + turns,
            "total_cost_usd": self._cost,
            "usage": {
                "input_tokens": -(-len(self._call.prompt.encode("utf-8", "backslashreplace")) // _BYTES_PER_TOKEN),
                "output_tokens": -(-self._written // _BYTES_PER_TOKEN),
            },
            "duration_ms": int(1000 * (time.monotonic() - self._began)),
        }
        return found if self._data is None else found | {"structured_output": self._data}

    def _failure(self) -> Mapping[str, Any] | None:
        if self._call.budget is not None and self._cost > self._call.budget:
            text = f"spent ${self._cost:g} of at most ${self._call.budget:g}"
            return {"subtype": "error_max_budget_usd", "text": text}
        return self._error


def _refusal() -> str | None:
    """Wait for the answer of a person; None when it is a yes. When there is nobody to answer, wait for ever."""
    line = sys.stdin.buffer.readline()
    if not line:
        behaviors.hang()
    try:
        answer = json.loads(line)["response"]["response"]
        return None if answer["behavior"] == "allow" else str(answer.get("message", "not allowed"))
    except (ValueError, KeyError, TypeError):
        return "the answer to the question for permission cannot be read"


ACTIONS: dict[str, Callable[[Player, Any], None]] = {
    "say": Player._say,
    "think": Player._think,
    "tool": Player._tool,
    "tools": Player._tools,
    "ask_permission": Player._ask_permission,
    "hear": lambda player, _: player._hear(),
    "wait": lambda _, seconds: time.sleep(seconds),
    "hang": lambda _, __: behaviors.hang(),
    "crash": Player._crash,
    "children": Player._children,
    "ignore_term": lambda _, __: behaviors.ignore_term(),
    "noise": Player._noise,
    "no_exit": lambda player, _: player._stay(),
    "cost": Player._set_cost,
    "turns": Player._set_turns,
    "result": Player._set_answer,
    "structured": Player._set_data,
    "error": Player._fail,
    "close_stdout": lambda player, _: player._writer.close(),
}


def use(tool: Mapping[str, Any], given: Mapping[str, Any], mcp_config: str | None = None) -> ToolOutcome:
    """Use a tool; one that is not real gives what the script says."""
    act, remote = _REAL.get(tool["name"]), tool["name"].startswith("mcp__")
    if (act is None and not remote) or "result" in tool:
        return ToolOutcome(str(tool.get("result", "")), bool(tool.get("failed", False)))
    try:
        return _use_remote(mcp_config, tool["name"], given) if act is None else ToolOutcome(act(given))
    except (OSError, ValueError, KeyError) as error:
        return ToolOutcome(f"{type(error).__name__}: {error}", failed=True)


def _use_remote(mcp_config: str | None, name: str, given: Mapping[str, Any]) -> ToolOutcome:
    from muster.sim.cli_agent.mcp_client import call_tool  # a client of HTTP takes longer to load than all of this

    return ToolOutcome(*call_tool(mcp_config, name, given))


def _read(given: Mapping[str, Any]) -> str:
    with open(_inside(given["file_path"]), encoding="utf-8") as file:  # noqa: PTH123
        return file.read()


def _write(given: Mapping[str, Any]) -> str:
    with open(_inside(given["file_path"]), "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(given["content"])
    return f"wrote {given['file_path']}"


def _edit(given: Mapping[str, Any]) -> str:
    text = _read(given)
    old = given["old_string"]
    if text.count(old) != 1:
        raise ValueError(f"{old!r} stands {text.count(old)} times in {given['file_path']}, not once")
    return _write({**given, "content": text.replace(old, given["new_string"])})


def _inside(path: str) -> str:
    """Return the real path of a file in this folder; a link that leads out of it is refused too."""
    here = os.path.realpath(".")
    found = os.path.realpath(path)
    if os.path.commonpath((here, found)) != here:
        raise ValueError(f"{path} is outside of the working directory")
    return found


_REAL = {"Read": _read, "Write": _write, "Edit": _edit}
