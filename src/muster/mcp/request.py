"""One call of a tool: who calls, the Muster that they may use, and a way to start runs under the server's budget."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from muster.app import Muster
from muster.app.parts.audit import AuditedAction
from muster.app.runs.handle import RunHandle
from muster.app.starts import Starts
from muster.domain.canonical import Json, digest
from muster.domain.errors import AccessDenied
from muster.domain.run import Run, StartRequest, User
from muster.mcp.inputs import KeyedInput, ToolInput

SERVER = "mcp"  # whose budget all runs that are started here count under
Scope = Literal["read", "start", "review", "admin"]
Begin = Callable[[Muster], Awaitable[RunHandle | Run]]
Progress = Callable[[float, float | None, str], Awaitable[None]]  # what is done, of how much, and in words


class ToolCaller(Protocol):
    """Who calls: the client at the other end of standard input, or the user behind a token."""

    @property
    def user(self) -> User:
        """The user as the application layer knows them."""

    @property
    def address(self) -> str:
        """Where the call comes from; empty for a process that started this server."""

    def require(self, scope: Scope) -> None:
        """Raise AccessDenied when this caller may not do what needs a scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCaller:
    """The process that started the server; it may do all that tools can do, and names no files."""

    address: str = ""

    @property
    def user(self) -> User:
        """A user without a name, who sees the runs of everybody."""
        return User()

    def require(self, scope: Scope) -> None:
        """Allow everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """What a tool works with."""

    server: Muster
    starts: Starts
    caller: ToolCaller
    tool: str
    request_id: str
    progress: Progress

    @property
    def muster(self) -> Muster:
        """The Muster of the caller, whose runs count under the budget of the server."""
        return self.server.acting_for(self._user)

    @property
    def _user(self) -> User:
        return replace(self.caller.user, level=self.server.server_budgets.level(SERVER))

    def may(self, scope: Scope) -> bool:
        """Return whether the caller may do what needs a scope."""
        try:
            self.caller.require(scope)
        except AccessDenied:
            return False
        return True

    async def start(self, action: str, given: KeyedInput, begin: Begin, *, part: str = "") -> Run:
        """Start a run, or return the one that the same call with the same key started; `part` tells several apart."""

        id_ = self.muster.runs.new_id()

        async def create(muster: Muster) -> Run:
            async with self.audited(action, id_) as doing:
                made = await begin(muster)
                run = await made.run() if isinstance(made, RunHandle) else made
                doing.subject = run.id
                return run

        request = self._request(given, part)
        user = replace(self._user, request=request, run=id_)
        if request is None:
            return await create(self.server.acting_for(user))
        return (await self.starts.start(user, create)).run

    def _request(self, given: KeyedInput, part: str) -> StartRequest | None:
        """Return what the start is counted and found again by; None for a local caller who gives no key."""
        key = None if given.request_key is None else f"mcp:{given.request_key}{part}"
        if key is None and not self.caller.address:
            return None
        # A local caller shares its address with nobody: each key is a client of its own, so none waits for another.
        client = self.caller.address or str(key)
        asked, *earlier = (digest([self.tool, part, one]) for one in given.spellings())
        return StartRequest(client=client, key=key, digest=asked, earlier=tuple(earlier), id=self.request_id)

    def audited(self, action: str, subject: str) -> AbstractAsyncContextManager[AuditedAction]:
        """Return a context for what the caller does: written down before it, and completed after it."""
        return self.muster.audit.action(action, subject, client=self.caller.address, request_id=self.request_id)


Handler = Callable[[ToolRequest, Any], Awaitable[dict[str, Json]]]  # takes the request and the input of the tool


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorTool:
    """A tool as clients see it, and what it does."""

    name: str
    description: str
    takes: type[ToolInput]
    scope: Scope  # that a token must have
    handle: Handler
    reads_only: bool = False
