"""The gateway of a server: which run a request belongs to, what bounds it, and who answers it. `Muster.gateway`."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from muster.agents.upstream.agent import Upstream
from muster.agents.upstream.assembly import assembled
from muster.agents.upstream.dialects import AnswerForm, UpstreamDialect, dialect_of
from muster.agents.upstream.facts import read_facts
from muster.agents.upstream.prompts import prompt_digest
from muster.app.base.backend import Backend
from muster.app.gateway.joins import KeptAnswer, RetryJoins
from muster.app.gateway.recorded import RecordedAnswers, recorded_in
from muster.app.gateway.session import HELD, GatewaySession
from muster.app.kinds.gateway import GATEWAY
from muster.app.runs.files import borrow
from muster.app.runs.runs import Runs
from muster.domain.budget import GATEWAY_OTHERS, Budgets, gateway_day, gateway_level, lineage_level
from muster.domain.call import Request
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, LimitReached, NotFound, OutcomeUnknown, StopRun
from muster.domain.exchange import NO_FACTS, WireFacts, WireRequest
from muster.domain.ids import RunId
from muster.domain.media import digest_of
from muster.domain.money import Microdollars, from_usd
from muster.domain.run import TERMINAL, Run, User
from muster.domain.run_order import MAX_CONCURRENCY
from muster.engine.calls.flow import AnswerFlow

MAX_SESSIONS = 1_000  # that are open at the same time
MAX_UPSTREAMS = 256  # models that are kept ready
Owner = tuple[str | None, str]  # whose run, and under which name


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRequest:
    """The request of a foreign program as it reached the server."""

    run: str  # the name under which it counts; empty: the day
    upstream: str
    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)
    names: Mapping[str, str] = field(default_factory=dict)
    client: str = ""  # the address that it came from
    retries: int = 0  # that its client says it made before


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedAnswer:
    """The answer to a foreign request, as it leaves."""

    flow: AnswerFlow
    is_joined: bool = False  # it was paid for by a request before
    assembles: AnswerForm | None = None  # the form of the stream of which it is the whole

    async def whole(self) -> bytes:
        """Wait for the end of a stream and return its answer in one piece; raises what kept it from being whole."""
        body = b"".join([piece async for piece in self.flow.pieces()])
        found = None if self.assembles is None else assembled(body + self.flow.kept, self.assembles)
        if found is None:
            raise OutcomeUnknown("the stream that this request repeats does not make a whole answer")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRun:
    """A run that a gateway holds open for one program."""

    run: RunId
    session: GatewaySession
    recorded: RecordedAnswers
    driving: "asyncio.Task[Run]"

    async def end(self, error: StopRun | None = None) -> None:
        """End it when the requests under way are answered: as completed, or as one to go on with."""
        self.session.close(error)
        await asyncio.wait({self.driving})


class Gateway:
    """Passes requests of foreign programs on: each is reserved before it leaves, and booked before its answer ends."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self._settings = backend, backend.settings.gateway
        self._sessions: dict[Owner, GatewaySession] = {}
        self._ending: set[asyncio.Task[Run]] = set()
        self._opening = asyncio.Lock()
        self._upstreams: OrderedDict[tuple[str, str], Upstream] = OrderedDict()
        self._joins = RetryJoins(backend.clock)
        self._tape: RecordedAnswers | None = None
        self._held: GatewaySession | None = None  # the only run, of a program that may be started again

    @property
    def upstreams(self) -> Sequence[str]:
        """Return the names of the upstreams."""
        return tuple(self._settings.upstreams)

    def api_of(self, upstream: str) -> str:
        """Return the API that an upstream speaks; raises BadConfiguration for one that is not set."""
        return self._backend.directory.upstream_api(upstream)

    async def pass_on(self, asked: ForeignRequest, user: User) -> PassedAnswer:
        """Pass a request on, or give it the answer of the one that it repeats; raises what refuses it."""
        api = self.api_of(asked.upstream)
        dialect = dialect_of(api, asked.method, asked.path)
        if dialect is None:
            raise NotFound(f"the gateway does not pass {asked.method} {asked.path} on")
        facts = _facts_of(asked, dialect)
        request = WireRequest(
            method=asked.method,
            path=asked.path,
            query=asked.query,
            facts=facts,
            headers=asked.headers,
            body=asked.body,
            digest=digest_of(asked.body),
            question=prompt_digest(asked.body) if asked.body else "",
            names=asked.names,
        )
        if self._tape is not None:
            return PassedAnswer(flow=await self._tape.take_only(request, dialect.form))
        agent = self._upstream(asked.upstream, facts.model)
        agent.quote(Request(messages=(), wire=request))
        if dialect.form is AnswerForm.FREE:
            session = await self._session(asked.run, user)
            return PassedAnswer(flow=await session.pass_on(agent, request, dialect.form))
        whose = asked.names.get("session") or asked.client
        question = (user.name, asked.run, asked.upstream, asked.path, whose, request.question)
        kept = self._joins.find(question, request, asked.retries)
        if kept is not None:
            whole = kept.form if kept.streams and not facts.stream else None
            return PassedAnswer(flow=kept.flow, is_joined=True, assembles=whole)
        session = await self._session(asked.run, user)
        flow = await session.pass_on(agent, request, dialect.form)
        self._joins.keep(question, KeptAnswer(flow, facts.stream, dialect.form, self._joins.now()))
        return PassedAnswer(flow=flow)

    async def hold(self, name: str, *, again: bool = False) -> HeldRun:
        """Open the run of a program that can be started again: the last one if it did not end well, or a new one.

        All requests of this gateway go through it from now on. Raises Conflict while another process holds it.
        """
        user = self._backend.user
        runs = Runs(self._backend, lambda *_: None)
        before = None if again else await self._unfinished(runs, name)
        day = datetime.fromtimestamp(self._backend.clock.now(), UTC).strftime("%Y-%m-%d")
        recorded = await recorded_in(self._backend.store, before.id) if before else RecordedAnswers(self._backend.store)
        session = GatewaySession(self._backend.clock, day, recorded=recorded, lasts=True)
        run = await runs.prepare_resume(before.id) if before else await self._create(runs, name, user, day, HELD)
        driving = self._begin(runs, run, session)
        self._held = session
        return HeldRun(run=run.id, session=session, recorded=recorded, driving=driving)

    @asynccontextmanager
    async def replay(self, tape: Path) -> AsyncIterator[RecordedAnswers]:
        """Answer all requests from the file of a run, and ask nobody; what it does not have is noted as a miss."""
        async with borrow(tape) as (store, run):
            self._tape = await recorded_in(store, run.id)
            try:
                yield self._tape
            finally:
                self._tape = None

    async def _unfinished(self, runs: Runs, name: str) -> Run | None:
        """Return the newest run of a program of this name, if it did not end well."""
        found = await runs.page(name=name, workloads=(GATEWAY.workload,), limit=100)
        newest = next((run for run in found if isinstance(run.spec, dict) and run.spec.get(HELD)), None)
        return None if newest is None or newest.state in TERMINAL else newest

    async def close(self) -> None:
        """Take no more requests, and wait until those that are under way are answered and booked."""
        for session in self._sessions.values():
            session.close()
        if self._ending:
            await asyncio.wait(set(self._ending))

    def _upstream(self, name: str, model: str) -> Upstream:
        found = self._upstreams.get((name, model))
        if found is None:
            found = self._upstreams[name, model] = self._backend.directory.upstream(name, model)
            if len(self._upstreams) > MAX_UPSTREAMS:
                self._upstreams.popitem(last=False)
        return found

    async def _session(self, name: str, user: User) -> GatewaySession:
        now = self._backend.clock.now()
        day = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
        if self._held is not None:
            return self._held
        owner = user.name, name or day
        async with self._opening:
            session = self._sessions.get(owner)
            if session is not None and session.day != day:
                session.close()
            if session is None or session.is_closed:
                session = self._sessions[owner] = await self._open(owner, user, day)
        return session

    async def _open(self, owner: Owner, user: User, day: str) -> GatewaySession:
        self._sessions = {key: one for key, one in self._sessions.items() if not one.is_closed}
        if len(self._sessions) >= MAX_SESSIONS:
            raise LimitReached(f"{MAX_SESSIONS:,} runs of the gateway are open; use fewer names", retry_after=60)
        runs = Runs(replace(self._backend, user=user), lambda *_: None)
        session = GatewaySession(self._backend.clock, day)
        self._begin(runs, await self._create(runs, owner[1], user, day), session)
        return session

    def _begin(self, runs: Runs, run: Run, session: GatewaySession) -> asyncio.Task[Run]:
        driving = asyncio.get_running_loop().create_task(self._drive(runs, run, session))
        self._ending.add(driving)
        driving.add_done_callback(self._ending.discard)
        return driving

    async def _create(self, runs: Runs, name: str, user: User, day: str, *marks: str) -> Run:
        run = runs.new_id()
        levels = [gateway_day(day), gateway_level(name)]
        declared = self._settings.runs
        await self._cap(levels[0], self._settings.day_usd)
        await self._cap(levels[1], declared.get(name))
        if name not in declared:
            levels.append(GATEWAY_OTHERS)
            await self._cap(GATEWAY_OTHERS, self._settings.other_usd)
        if user.level is not None:
            levels.append(user.level)
        budgets = Budgets(
            lineage=lineage_level(run),
            above=tuple(levels),
            day_cap=self._backend.settings.day_cap,
            user=user.budget,
        )
        options = runs.options(name=name, concurrency=MAX_CONCURRENCY)
        spec: dict[str, Json] = {"name": name, "day": day, **dict.fromkeys(marks, True)}
        return await runs.create(GATEWAY.workload, spec, options, run, budgets)

    async def _cap(self, level: str, usd: float | None) -> None:
        cap: Microdollars | None = None if usd is None else from_usd(f"{usd:.6f}")
        if cap is not None:
            await self._backend.store.runs.cap_level(level, cap)

    async def _drive(self, runs: Runs, run: Run, session: GatewaySession) -> Run:
        try:
            return await runs.drive(run, before=session.serve).wait()
        except BaseException as error:
            session.fail(error)
            raise
        finally:
            session.close()


def _facts_of(asked: ForeignRequest, dialect: UpstreamDialect) -> WireFacts:
    if dialect.method == "GET":
        return NO_FACTS
    facts = read_facts(asked.body, dialect)
    if facts.background:
        raise BadArgument(
            "cannot be passed on by the gateway yet, since the cost is known only later",
            argument="background",
            suggestions=("leave background out",),
        )
    if facts.server_tool:
        raise BadArgument(
            f"has {facts.server_tool}, which the gateway does not pass on: what it costs has no bound in the request",
            argument="tools",
            suggestions=("use tools that the client runs",),
        )
    if facts.stream and dialect.form is AnswerForm.EMBEDDINGS:
        raise BadArgument("does not go with embeddings", argument="stream")
    return facts
