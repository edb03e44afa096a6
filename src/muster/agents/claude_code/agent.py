"""The agent that is Claude Code."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muster.agents.base import Inbox, OnDelta, read_answer
from muster.agents.claude_code.conversation import ClaudeConversation
from muster.agents.claude_code.outcome import ClaudeExit, ClaudeTerms, key_refused, permission_asked, read_outcome
from muster.agents.claude_code.sdk import ProcessTransport, Sdk, load, message_frame, require
from muster.agents.claude_code.setup import Setup
from muster.agents.local import (
    budget_of,
    folder_of,
    inbox_of,
    mcp_config_of,
    session_of,
    transcript_of,
    variables_of,
)
from muster.agents.processes.feed import MessageFeed
from muster.agents.processes.process import ProcessCommand
from muster.agents.processes.registry import ProcessRegistry
from muster.agents.usage import ProcessBill, max_tokens_of
from muster.domain.agent import Profile, Quote, Timeouts
from muster.domain.call import Reply, Request, Timings
from muster.domain.canonical import JsonObject
from muster.domain.errors import AgentFailed, BadConfiguration, BadOutput, InvalidRequest, NotStarted, Paid, WireError
from muster.domain.money import Lane, Microdollars
from muster.domain.script import count_tokens
from muster.text.schemas.json_schema import require_schema

MAX_ARGUMENT = 131_071  # bytes that the system takes as one argument of a program
PROGRAM = "claude"  # as a failure names it: its arguments hold the system prompt


class ClaudeCodeAgent:
    """Asks Claude Code: every call is a process of its own, which is dead when the call is over.

    A session lasts in the files of the agent's home folder; a request goes on with it by naming it. Nobody is here to
    give permissions: a tool that needs one ends the call.
    """

    def __init__(
        self,
        *,
        profile: Profile,
        processes: ProcessRegistry,
        setup: Setup,
        most: Microdollars,
        lane: Lane = Lane.BILLED,
    ) -> None:
        self._profile, self._processes, self.setup = profile, processes, setup
        self._most, self._lane = most, lane
        self._sdk: Sdk | None = None

    @property
    def profile(self) -> Profile:
        """Return the profile: the name, its defaults and its pace."""
        return self._profile

    def quote(self, request: Request) -> Quote:
        """Return what is reserved for an attempt; Claude Code is told to stop before that."""
        if self._sdk is None:
            require()
        tokens = 1 + max_tokens_of(request) + count_tokens(request.system + prompt_of(request))
        return Quote(most=self._most_of(request), tokens=tokens)

    @property
    def takes_messages(self) -> bool:
        """Return that it can be told more while it works."""
        return True

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Ask once, in a process of its own."""
        return await self._call(request, timeouts, None, on_delta)

    async def converse(
        self, request: Request, timeouts: Timeouts, inbox: Inbox, on_delta: OnDelta | None = None
    ) -> Reply:
        """Ask once, and tell it what comes into the inbox meanwhile: it takes that in before its next turn."""
        return await self._call(request, timeouts, inbox, on_delta)

    async def _call(self, request: Request, timeouts: Timeouts, inbox: Inbox | None, on_delta: OnDelta | None) -> Reply:
        if request.tools:
            raise InvalidRequest(f"agent {self._profile.name!r} uses its own tools; a request cannot add others")
        require_schema(request)
        try:
            sdk = await self._load()
            order = self._order(sdk, request, streams=on_delta is not None, told_more=inbox is not None)
        except BadConfiguration as error:
            # An exchange fails with an error of the wire, or it would be taken for one that may have cost money.
            raise NotStarted(error.message, suggestions=error.suggestions) from error
        conversation = ClaudeConversation(on_delta, keyed=bool(self.setup.key), scrub=self.setup.scrub)
        try:
            async with self._processes.process(order) as process:
                pipe = ProcessTransport(process, timeouts, conversation)
                if inbox is None:
                    return await self._ask(sdk, request, pipe, conversation)
                async with MessageFeed(process, inbox, message_frame) as pipe.feed:
                    return await self._ask(sdk, request, pipe, conversation)
        except WireError as error:
            self._complete(error, conversation)
            raise

    async def close(self) -> None:
        """Do nothing: processes end with their calls."""

    async def _load(self) -> Sdk:
        if self._sdk is None:
            self._sdk = await asyncio.to_thread(load)
        return self._sdk

    def _order(self, sdk: Sdk, request: Request, *, streams: bool, told_more: bool) -> ProcessCommand:
        setup, most = self.setup.set(request.settings or {}), self._most_of(request)
        options = options_of(setup, request, most, streams=streams, told_more=told_more)
        command = sdk.command(options, self.setup.cli_path)
        self._check_size(command)
        self._write_files()
        folder = folder_of(request, self.setup.folder)
        return ProcessCommand(
            agent=self._profile.name,
            command=command,
            folder=folder,
            environment=sdk.environment(folder) | dict(self.setup.environment) | variables_of(request),
            input=b"",
            stays_open=True,
        )

    async def _ask(self, sdk: Sdk, request: Request, pipe: ProcessTransport, conversation: ClaudeConversation) -> Reply:
        terms = self._terms(request)
        try:
            await sdk.converse(prompt_of(request), pipe)
        except Exception as error:
            # Once there is a result, nothing that comes after it counts; it often exits with an error.
            if not conversation.over or pipe.goes_on:
                raise _broken(terms, conversation, pipe.log, error) from (
                    None if isinstance(error, WireError) else error
                )
        if conversation.result is None:
            raise _without_result(terms, conversation, pipe.log)
        note = await pipe.wait_for_exit()
        timings = Timings(first_token=pipe.first_word)
        ending = ClaudeExit(log=self.setup.scrub(pipe.log), note=note, timings=timings)
        try:
            return await read_answer(request, read_outcome, terms, conversation, conversation.result, ending)
        except WireError as error:
            if pipe.feed is not None and pipe.feed.unread:
                error.paid = Paid.UNKNOWN  # it may have begun to work on what it was told last
            raise

    def _complete(self, error: WireError, conversation: ClaudeConversation) -> None:
        """Return the error with its possible cost, and without secrets."""
        error.message = self.setup.scrub(error.message)
        error.args = (error.message,)
        begun = conversation.answered  # a refusal of the API costs nothing, but what it answered before does
        if isinstance(error, AgentFailed):
            error.log, error.command = self.setup.scrub(error.log), PROGRAM
            begun = conversation.initialized  # it has heard the question and did not say what that cost
        if error.paid is Paid.NO and begun and self._most:
            error.paid = Paid.UNKNOWN

    def _most_of(self, request: Request) -> Microdollars:
        budget = budget_of(request)
        return self._most if budget is None else budget

    def _terms(self, request: Request) -> ClaudeTerms:
        return ClaudeTerms(
            agent=self._profile.name,
            most=self._most_of(request),
            lane=self._lane,
            key_variable=self.setup.key_variable if self.setup.key else "",
            schema=request.schema,
            resumed=session_of(request) is not None,
        )

    def _write_files(self) -> None:
        home, servers = self.setup.home, self.setup.mcp_servers
        if home is not None:
            with self._writing(home, "its folder cannot be created"):
                home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if servers is not None:
            with self._writing(servers.file, "its MCP configuration cannot be written"):
                servers.write_down()

    @contextmanager
    def _writing(self, path: Path, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise NotStarted(
                f"agent {self._profile.name!r}: {what}: {error}", suggestions=(f"make {_nearest(path)} writable",)
            ) from error

    def _check_size(self, command: tuple[str, ...]) -> None:
        longest = max(len(part.encode("utf-8", "surrogatepass")) for part in command)
        if longest > MAX_ARGUMENT:
            raise InvalidRequest(
                f"agent {self._profile.name!r}: Claude Code takes its system prompt and its schema as arguments, of at "
                f"most {MAX_ARGUMENT} bytes each, and one has {longest}",
                suggestions=("put it into the message instead, which has no such limit",),
            )


def _broken(terms: ClaudeTerms, conversation: ClaudeConversation, log: str, error: Exception) -> WireError:
    if conversation.asked is not None:
        return permission_asked(terms, conversation, log)
    if isinstance(error, WireError):
        return error
    what = f"the SDK cannot parse the output of Claude Code: {error}"
    return BadOutput(f"agent {terms.agent!r}: {what}", log=log)


def _without_result(terms: ClaudeTerms, conversation: ClaudeConversation, log: str) -> WireError:
    if conversation.key_refused is not None:
        return key_refused(terms, conversation.key_refused)
    return BadOutput(f"agent {terms.agent!r}: {conversation.unread or 'it gave no result'}", log=log)


def _nearest(folder: Path) -> Path:
    return next((parent for parent in folder.parents if parent.exists()), folder)


OWN_TOOLS = "mcp__muster"  # those of the server that a slot of the pool gives it, which need no permission
INTERACTIVE_TOOLS = ("AskUserQuestion", "EnterPlanMode", "ExitPlanMode")  # they wait for a person, and there is none


def options_of(
    setup: Setup, request: Request, most: Microdollars, *, streams: bool, told_more: bool = False
) -> JsonObject:
    """Return the options of a call; one that is told more repeats what it takes in."""
    declared, config = _declared(setup), mcp_config_of(request)
    return {
        "model": setup.model,
        "fallback_model": setup.fallback_model,
        "effort": setup.effort,
        "max_turns": setup.max_turns,
        "max_budget_usd": float(ProcessBill(most=most).told) if most else None,
        "system_prompt": _system(request.system),
        "resume": session_of(request),
        "output_format": None if request.schema is None else {"type": "json_schema", "schema": dict(request.schema)},
        "include_partial_messages": streams,
        "permission_mode": setup.permission_mode,
        "permission_prompt_tool_name": "stdio",  # whoever drives it is asked
        "allowed_tools": [*setup.allowed_tools, *([OWN_TOOLS] if mcp_config_of(request) else [])],
        "disallowed_tools": [
            *setup.disallowed_tools,
            *(name for name in INTERACTIVE_TOOLS if name not in setup.allowed_tools),
        ],
        "mcp_servers": declared or config or {},
        # The option may be given twice; both files are not for everybody's eyes, as a command line is.
        "extra_args": ({"mcp-config": config} if declared and config else {})
        | ({"replay-user-messages": None} if told_more else {}),
        # Nothing that lies about in folders changes what it does.
        "strict_mcp_config": True,
        "setting_sources": [],
        "cwd": str(folder_of(request, setup.folder)),
    }


def _declared(setup: Setup) -> str | None:
    """Name the file that tells of the MCP servers of its settings."""
    servers = setup.mcp_servers
    return str(servers.file) if servers is not None and servers.declared else None


def _system(system: str) -> dict[str, str]:
    """Keep its own instructions, without which it does not know its tools; ours come after them."""
    preset = {"type": "preset", "preset": "claude_code"}
    return preset | {"append": system} if system else preset


def prompt_of(request: Request) -> str:
    """Return what is said to it: all of it, or the last of it when a session holds the rest."""
    if session_of(request) is None:
        return transcript_of(request, system=False)
    said = request.prompt or "".join(message.text for message in request.messages[-1:])
    return "\n\n".join((said, *inbox_of(request)))
