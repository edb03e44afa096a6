"""The border to claude-agent-sdk: loaded by the first call, its names are used only here, and its transport.

The transport carries frames of JSON, one a line, over a process of ours; it starts and ends nothing.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from muster.agents.base import InboxMessage
from muster.agents.claude_code.conversation import ClaudeConversation
from muster.agents.local import LineBuffer, exit_of
from muster.agents.processes.conversation import MAX_OUTPUT, too_long, wait_for_output
from muster.agents.processes.feed import MessageFeed
from muster.agents.processes.process import Process
from muster.domain.agent import Timeouts
from muster.domain.canonical import Json, JsonObject
from muster.domain.errors import AgentFailed, BadConfiguration, BadExit, BadOutput

PACKAGE = "claude_agent_sdk"
NEEDED = "claude-agent-sdk 0.2.182 or a later 0.2"
NOBODY = "Nobody is here who could give permission."

_INSTALL = "pip install 'muster-ai[claude]'"


class Sdk:
    """The SDK, loaded."""

    def __init__(self, module: Any, builder: Any) -> None:
        self._module, self._builder = module, builder

    def command(self, options: Mapping[str, Json], cli_path: Path | None) -> tuple[str, ...]:
        """Build the command line, as the SDK itself would."""
        try:
            found = self._module.ClaudeAgentOptions(cli_path=str(cli_path or self._bundled()), **options)
            # Private, and the only use of anything private: there is no other way to start the process ourselves.
            return tuple(self._builder(prompt="", options=found)._build_command())
        except (AttributeError, TypeError) as error:
            raise self._unfit(str(error)) from error

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables by which Claude Code knows that the SDK drives it."""
        return {
            "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
            "CLAUDE_AGENT_SDK_VERSION": str(self._module.__version__),
            "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
            "PWD": str(folder),
        }

    async def converse(self, prompt: str, transport: Any) -> None:
        """Let the SDK talk over a transport until its messages end; whoever reads them reads them there."""

        async def refuse(*_: Any) -> Any:
            return self._module.PermissionResultDeny(message=NOBODY, interrupt=True)

        # What is said is data: a path or a command in it must not be looked up.
        options = self._module.ClaudeAgentOptions(can_use_tool=refuse, verbatim_prompts=True)
        async with aclosing(self._module.query(prompt=prompt, options=options, transport=transport)) as messages:
            async for _ in messages:
                pass

    def _bundled(self) -> Path:
        path = Path(self._module.__file__).parent / "_bundled" / "claude"
        if not path.is_file():
            raise BadConfiguration(
                f"the installed claude-agent-sdk does not include Claude Code: no such file: {path}",
                suggestions=("install its wheel for this platform", 'or set its path in muster.toml: cli_path = "…"'),
            )
        return path

    def _unfit(self, why: str) -> BadConfiguration:
        version = getattr(self._module, "__version__", "of an unknown version")
        return BadConfiguration(
            f"claude-agent-sdk {version} is not supported: {why}", suggestions=(f"use {NEEDED}: {_INSTALL}",)
        )


def require(package: str = PACKAGE) -> None:
    """Raise BadConfiguration when the SDK is not installed; it is not loaded for that."""
    if find_spec(package) is None:
        raise BadConfiguration("Claude Code needs claude-agent-sdk, which is not installed", suggestions=(_INSTALL,))


@cache
def load() -> Sdk:
    """Load the SDK, which takes about a second; raises BadConfiguration when it is missing or does not fit."""
    require()
    import claude_agent_sdk

    # It reports errors that we report too; a program without logging of its own must not print them.
    logging.getLogger(PACKAGE).addHandler(logging.NullHandler())
    try:
        from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport
    except ImportError as error:
        raise Sdk(claude_agent_sdk, None)._unfit(str(error)) from error
    return Sdk(claude_agent_sdk, SubprocessCLITransport)


def message_frame(message: InboxMessage) -> bytes:
    """Return what tells Claude Code something while it works; as with the question, nothing in it is looked up."""
    said = {"role": "user", "content": message.text}
    frame = {"type": "user", "uuid": message.id, "session_id": "", "parent_tool_use_id": None, "message": said}
    return json.dumps(frame | {"client_composed": True}).encode() + b"\n"


EXIT_SECONDS = 2.0  # seconds that it may take to exit when there is nothing left to do
DENIED_SECONDS = 5.0  # seconds that it may take to say what it cost when it was denied a tool


class ProcessTransport:
    """Carries frames between the SDK and a process, and lets an observer listen.

    Reading ends with the frame that makes the conversation over. Whatever goes wrong before is raised there, and the
    SDK passes it on to whoever waits for it.
    """

    def __init__(self, process: Process, timeouts: Timeouts, conversation: ClaudeConversation) -> None:
        self.process, self._timeouts, self._conversation = process, timeouts, conversation
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()
        self._deadline = self._began + timeouts.call
        self._denied: float | None = None  # when it was, on the loop's clock
        self._lines = LineBuffer()
        self.feed: MessageFeed | None = None  # of one that is told more while it works
        self.goes_on = False  # it has answered, and will answer once more: it was told something that it takes in next
        self.first_word: float | None = None  # seconds

    @property
    def log(self) -> str:
        """What the process wrote to standard error."""
        return self.process.log.text

    async def connect(self) -> None:
        """Do nothing: the process runs already."""

    async def write(self, data: str) -> None:
        """Write to the process; one that has ended is noticed where its output is read."""
        self.process.write(data.encode())

    async def end_input(self) -> None:
        """Let its input end."""
        self.process.close_input()

    async def close(self) -> None:
        """Do nothing: whoever started the process ends it."""

    def is_ready(self) -> bool:
        """Return whether the process runs."""
        return self.process.status is None

    async def read_messages(self) -> AsyncIterator[JsonObject]:
        """Yield the frames of the process as they come."""
        over = False
        while not over:
            for frame in self._frames(await self._more()):
                over = self._listen(frame)
                if self.feed is not None:
                    await self._heed(self.feed, frame)
                over = over and not self.goes_on
                yield frame
                if over:
                    break
        if not self._conversation.initialized:
            # The SDK still waits for the answer to its greeting, and would wait for a minute.
            raise self._gone()

    async def wait_for_exit(self) -> str:
        """Wait a moment for a process that has answered to exit; return a note about one that does not."""
        process = self.process
        process.close_input()
        # What it was told and did not take in it would begin to work on now.
        until = self._clock() + (0.0 if self.feed is not None and self.feed.unread else EXIT_SECONDS)
        while process.status is None and self._clock() < until:
            await process.news(until)
            process.take()
        process.drain()
        process.take()
        return (
            ""
            if process.status is not None
            else f"it did not exit within {EXIT_SECONDS:g}s of its answer and was stopped"
        )

    async def _heed(self, feed: MessageFeed, frame: JsonObject) -> None:
        """Tell it more from the moment it works on the question until it has answered; it repeats what it takes in."""
        if frame.get("type") == "user" and frame.get("isReplay"):
            await feed.acknowledge([str(frame.get("uuid"))])
        result = self._conversation.result
        if frame.get("type") == "result" and result is not None:
            feed.stop()
            self.goes_on = feed.unread and not result.is_error
        elif result is None and self._conversation.begun:
            feed.start()

    def _listen(self, frame: JsonObject) -> bool:
        self._conversation.receive(frame)
        now = self._clock()
        if self.first_word is None and self._conversation.spoke:
            self.first_word = now - self._began
        if self._denied is None and self._conversation.asked is not None:
            self._denied = now
            self._deadline = min(self._deadline, now + DENIED_SECONDS)
        return self._conversation.over

    async def _more(self) -> bytes:
        """Wait for more output; raises when there will be none, or its time is over."""
        process = self.process
        while not (data := process.take()):
            if process.status is not None:
                process.drain()
                if data := process.take():
                    return data
                raise self._gone()
            if process.silent:
                await self._exit()
                raise self._gone()
            await wait_for_output(self.process, self._deadline, self._timeouts, self._conversation.tool)
        return data

    async def _exit(self) -> None:
        until = self._clock() + EXIT_SECONDS
        while self.process.status is None and self._clock() < until:
            await self.process.news(until)

    def _frames(self, data: bytes) -> Iterator[JsonObject]:
        yield from (frame for line in self._lines.feed(data) if (frame := self._frame(line)) is not None)
        if self._lines.waiting > MAX_OUTPUT:
            raise too_long(self.process)

    def _frame(self, line: bytes) -> JsonObject | None:
        if not line.lstrip().startswith(b"{"):
            return None  # some versions write a word of their own between frames
        try:
            found: JsonObject = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadOutput(
                f"agent {self.process.order.agent!r}: Claude Code wrote a line that is not JSON: {error}",
                log=self.process.log.text,
            ) from error
        return found

    def _gone(self) -> AgentFailed:
        process = self.process
        log = process.log.text
        last = next((line.strip() for line in reversed(log.splitlines()) if line.strip()), "")
        how = exit_of(process.status) if process.status is not None else "closed its output"
        said = f": {last[:500]}" if last else ""
        error = BadExit(f"agent {process.order.agent!r}: Claude Code {how} before it answered{said}", log=log)
        error.exit_status = process.status
        return error
