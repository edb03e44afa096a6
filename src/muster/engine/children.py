"""The child runs of one run: started once, under its budget, stopped with it."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from muster.domain.budget import PART, Budgets, lineage_level, run_level
from muster.domain.canonical import Json, digest
from muster.domain.entry import EntryKind
from muster.domain.errors import (
    AgentUnusable,
    AuthRefused,
    BadConfiguration,
    BudgetExhausted,
    ChildFailed,
    Interrupted,
    KeyReused,
    LeftWaiting,
    RunCanceled,
    StopRun,
    state_verb,
)
from muster.domain.ids import RunId
from muster.domain.run import CALLS_ONLY, TERMINAL, NewRun, Origin, Reuse, Run, RunState
from muster.engine.base.clock import Clock
from muster.engine.base.driven_run import CODE_CHANGED, ChildOptions, DrivenRun, budgets_of
from muster.store.base import Record, Store

DriveChild = Callable[[Run], Awaitable[Run]]

_CALLS_OF = {Reuse.REPLIES: Reuse.CALLS, Reuse.REPLAY: Reuse.RECORDED}
_WHOLE_OF = {Reuse.CALLS: Reuse.REPLIES, Reuse.RECORDED: Reuse.REPLAY}
AGAIN = "\x1f"  # between a key and the run that was tried under it before; no key can hold it


class Children:
    """Gives the results of child runs by key."""

    def __init__(
        self, parent: DrivenRun, *, store: Store, clock: Clock, new_id: Callable[[], RunId], drive: DriveChild
    ) -> None:
        self._store, self._clock, self._new_id = store, clock, new_id
        self._parent, self._epoch, self._inheritance = parent.run, parent.epoch, parent.inheritance
        self._drive, self._asked = drive, parent.asked
        self._driven: set[RunId] = set()

    async def __call__(self, key: str, workload: str, spec: Json, options: ChildOptions) -> Any:
        """Drive the child to its end; a failed one of an older driver is tried anew, with its replies."""
        entry = await self._store.journal.find(self._parent.id, key)
        if entry is not None and entry.kind is not EntryKind.CHILD:
            raise KeyReused(f"key {key!r} is used for a {entry.kind} in this run and cannot be used for a child")
        run = await self._store.journal.newest_child(self._parent.id, key)
        if run is not None and (run.workload, run.spec) != (workload, spec):
            raise KeyReused(
                f"key {key!r} is used for another child in this run",
                suggestions=("use a different key for each child", CODE_CHANGED),
            )
        if run is None or self._worth_another(run):
            run = await self._create(key, workload, spec, options, failed=run)
        if entry is None:
            await self._note(key, run)
        if run.state not in TERMINAL:
            self._driven.add(run.id)
            run = await self._drive(run)
            await self._require_wanted(run)
        return _result(run, key)

    async def _require_wanted(self, run: Run) -> None:
        """Stop the parent if the child was canceled with it: a child notices first, and would seem to have failed."""
        if run.state is not RunState.CANCELED:
            return
        parent = await self._store.runs.get(self._parent.id)
        if parent is not None and parent.cancel_requested:
            raise RunCanceled(f"run {self._parent.id} was canceled")

    def _worth_another(self, run: Run) -> bool:
        return run.state in TERMINAL - {RunState.COMPLETED} and run.id not in self._driven

    async def _create(self, key: str, workload: str, spec: Json, options: ChildOptions, *, failed: Run | None) -> Run:
        before = failed if failed is not None else await self._inheritance.child(key)
        if before is None:
            self._asked.note_missing(key)
        child, dispatch = self._new_id(), self._parent.dispatch
        budgets = await self._budgets(child, before)
        if before is not None and budgets.lineage != lineage_level(child):
            before = await self._store.runs.end_of_lineage(before.id)  # of one piece of work there is one end
            # An end that was continued completed as a run that was deleted since: this child begins a new story.
            if before is not None and before.continued_by is not None:
                budgets = replace(budgets, lineage=lineage_level(child))
        return await self._store.runs.create(
            NewRun(
                id=child,
                workload=workload,
                spec=spec,
                created_at=self._clock.now(),
                name=self._parent.name and f"{self._parent.name}/{key}",
                seed=self._parent.seed,
                cap=options.cap,
                timeout=options.timeout,
                concurrency=self._parent.concurrency,
                dispatch=dispatch if options.mode is None else replace(dispatch, mode=options.mode),
                parent=self._parent.id,
                parent_key=key if failed is None else f"{key}{AGAIN}{failed.id}",
                origin=None if before is None else Origin(run=before.id, reuse=self._reuse(before, workload, spec)),
                budgets=budgets,
                rules=self._parent.rules,
            )
        )

    def _reuse(self, before: Run, workload: str, spec: Json) -> Reuse:
        """Return how much of an earlier child counts: of the same work everything, of other work only its calls."""
        reuse = self._inheritance.reuse
        if before.parent == self._parent.id and not self._inheritance.replays:
            return Reuse.REPLIES  # it was a child of this very run: what it did counts wholly
        if (before.workload, before.spec) != (workload, spec):
            return _CALLS_OF.get(reuse, reuse)
        if reuse in CALLS_ONLY and before.state is RunState.COMPLETED:
            return _WHOLE_OF[reuse]
        return reuse

    async def _budgets(self, child: RunId, before: Run | None) -> Budgets:
        """Return the budgets of a child: below its parent's, and that of the run it continues if both have one story.

        The parent of that run may be one that this parent was forked from, which has a budget of its own.
        """
        parent = await budgets_of(self._store, self._parent)
        above = tuple(dict.fromkeys((run_level(self._parent.id), parent.lineage, *parent.above)))
        lineage = lineage_level(child)
        if before is not None:
            its = await budgets_of(self._store, before)
            lineage = its.lineage if parent.lineage in its.above else lineage
        return Budgets(lineage=lineage, above=above, day_cap=parent.day_cap, user=parent.user)

    async def _note(self, key: str, run: Run) -> None:
        """Note the child in the journal, once; also one that was made by a driver that died before it could."""
        await self._store.journal.record(
            Record(
                run=self._parent.id,
                epoch=self._epoch,
                key=key,
                kind=EntryKind.CHILD,
                digest=digest({"workload": run.workload, "spec": run.spec}),
                value=run.id,
                at=self._clock.now(),
                kind_of_event=None,
            )
        )


def _result(run: Run, key: str) -> Any:
    if run.state is RunState.COMPLETED:
        return run.result
    if run.state is RunState.INTERRUPTED:
        raise Interrupted(f"child run {run.id} was interrupted")
    if run.state is RunState.WAITING:
        raise LeftWaiting(f"child run {run.id} waits for its batches or for a signal")
    message = str((run.error or {}).get("message", run.ended_reason))
    raise ChildFailed(
        f"child run {run.id} under {key!r} {state_verb(run.state)}: {message}",
        run=run.id,
        reason=run.ended_reason or "",
        cause=message,
        stop=_stop_above(run, message),
    )


def _stop_above(run: Run, message: str) -> StopRun | None:
    """Return what stops the parent of a failed child too: an agent that nobody can ask, or a budget not its own."""
    error = run.error or {}
    suggestions, level = tuple(error.get("suggestions", ())), str(error.get("level", ""))
    if run.ended_reason == AuthRefused.code:
        return AuthRefused(message, suggestions=suggestions)
    if run.ended_reason == AgentUnusable.code and "agent" in error:
        return AgentUnusable.of(BadConfiguration(message, suggestions=suggestions), error["agent"])
    own = ("", run_level(run.id), run.budgets.lineage if run.budgets else "")
    if run.ended_reason != BudgetExhausted.code or level in own or level.startswith(PART):
        return None
    return BudgetExhausted(message, level=level, suggestions=suggestions)
