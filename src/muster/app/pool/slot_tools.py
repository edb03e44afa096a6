"""What an agent in a slot can do: send and read messages, share context, and start tasks where recursion is allowed.

The sender is the slot itself, whatever the arguments are.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from muster.agents.tool_server.protocol import OfferedTool, ToolHandler
from muster.app.pool.slots import SlotDirectory
from muster.app.pool.task_queries import Task
from muster.app.pool.tasks import Tasks
from muster.domain.call import Tool
from muster.domain.canonical import Json
from muster.domain.entry import Signal
from muster.domain.errors import Conflict
from muster.engine.context import Context
from muster.pool.tasks import SlotProfile, TaskSpec
from muster.store.base import PoolTable, SlotStanding

WORKING = (SlotStanding.ACTIVE, SlotStanding.LEAVING)
Arguments = Mapping[str, Any]  # of a tool; they fit its schema


class Messenger(Protocol):
    """What slots say to each other: the part of `m.pool` that is offered to agents."""

    async def send(self, slot: str, text: str, *, sender: str = "", client_id: str | None = None) -> Signal:
        """Send a message to a slot."""

    async def broadcast(self, text: str, *, sender: str = "") -> Sequence[str]:
        """Send a message to every slot but the sender."""

    async def context(self) -> Mapping[str, str]:
        """Return the shared texts."""

    async def context_text(self, name: str) -> str:
        """Return a shared text."""

    async def set_context(self, name: str, value: str) -> None:
        """Set a shared text."""


class SlotTools:
    """The tools of one slot, while a task of it is driven."""

    def __init__(
        self, slot: SlotProfile, messenger: Messenger, tasks: Tasks, slots: PoolTable, directory: SlotDirectory
    ) -> None:
        self._slot, self._messenger, self._tasks = slot, messenger, tasks
        self._slots, self._directory = slots, directory
        self.run: Context | None = None  # the task, as soon as it is driven

    def offered(self, *, recursion: bool) -> list[OfferedTool]:
        """Return the tools; those that start tasks only with `recursion`."""
        found = [
            _tool("send_message", "Send a message to another slot, by its name.", self._send, to=_TEXT, text=_TEXT),
            _tool("broadcast", "Send a message to every other slot.", self._broadcast, text=_TEXT),
            _tool("read_messages", "Read the messages that were sent to you, once.", self._read),
            _tool("list_slots", "List the slots: their names, roles and whether they are at work.", self._list),
            _tool("get_context", "Return a shared text by its name.", self._get, name=_TEXT),
            _tool("list_context", "Return all shared texts by their names.", self._context),
            _tool("set_context", "Set a text that every slot is told.", self._set, name=_TEXT, value=_TEXT),
        ]
        if recursion:
            more = {"agent": _TEXT, "role": _TEXT, "slot": _TEXT, "budget_usd": _AMOUNT}
            found += [
                _tool("submit_task", "Start a task in another slot; returns its id.", self._submit, more, prompt=_TEXT),
                _tool("task_result", "Return the state and the output of a task.", self._result, id=_TEXT),
            ]
        return found

    async def _send(self, given: Arguments) -> Json:
        await self._messenger.send(given["to"], given["text"], sender=self._slot.name)
        return f"sent to {given['to']}"

    async def _broadcast(self, given: Arguments) -> Json:
        names = await self._messenger.broadcast(given["text"], sender=self._slot.name)
        return f"sent to {', '.join(names) or 'nobody'}"

    async def _read(self, given: Arguments) -> Json:
        """Take messages for the call that is being made: its journal has them before the agent does."""
        inbox = None if self.run is None else self.run.open_inbox
        if inbox is None:
            raise Conflict("this slot does not work on a task now")
        return [{"from": one.sender or "the operator", "text": one.payload} for one in await inbox.read()]

    async def _list(self, given: Arguments) -> Json:
        found: list[Json] = []
        for record in await self._slots.slots():
            slot = self._directory.at(record.place)
            state = "busy" if record.run else "idle" if record.standing in WORKING else str(record.standing)
            found.append({"name": slot.name, "role": slot.role, "description": slot.description, "state": state})
        return found

    async def _get(self, given: Arguments) -> Json:
        return await self._messenger.context_text(given["name"])

    async def _context(self, given: Arguments) -> Json:
        return dict(await self._messenger.context())

    async def _set(self, given: Arguments) -> Json:
        await self._messenger.set_context(given["name"], given["value"])
        return f"set {given['name']}"

    async def _submit(self, given: Arguments) -> Json:
        started_by = None if self.run is None else self.run.run
        return _shown(await self._tasks.submit(TaskSpec(**given), started_by=started_by))

    async def _result(self, given: Arguments) -> Json:
        return _shown(await self._tasks.get(given["id"]))


_TEXT: dict[str, Json] = {"type": "string", "minLength": 1}
_AMOUNT: dict[str, Json] = {"type": "number", "exclusiveMinimum": 0}


def _tool(
    name: str, description: str, handle: ToolHandler, optional: Mapping[str, Json] | None = None, /, **required: Json
) -> OfferedTool:
    parameters: dict[str, Json] = {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }
    return OfferedTool(tool=Tool(name=name, description=description, parameters=parameters), handle=handle)


def _shown(task: Task) -> dict[str, Json]:
    return {"id": task.id, "state": str(task.state), "output": task.output}
