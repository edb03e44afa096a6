"""Runs: continued, forked and replayed. The part of `Muster.runs` that makes one run from another."""

import contextlib
from dataclasses import replace

from muster.app.runs.actions import RunActions
from muster.app.runs.options import descendant
from muster.domain.budget import Budgets, require_left
from muster.domain.errors import AlreadyContinued, Conflict, NotFound, QueueFailed
from muster.domain.ids import RunId
from muster.domain.money import Microdollars, show_usd
from muster.domain.run import REPLAYS, TERMINAL, Reuse, Run, RunState
from muster.settings import parse_budget


class RunContinuations(RunActions):
    """Makes runs from runs of an open Muster; a lineage, a run and those that it is resumed as, has one end."""

    async def prepare_resume(self, reference: str, *, budget_usd: str | float | None = None, here: bool = True) -> Run:
        """Return the run that goes on: the end of the lineage, or its one continuation, made if it did not complete.

        One that has completed is the answer itself. If it is to be driven in this process (`here`), nobody else may
        drive it, and the batches that it waits for must be within reach. Raises before anything changes.
        """
        named = await self.find(reference)
        cap = parse_budget(budget_usd)
        self._workloads.find(named.workload)
        await self._require_root(named)
        while True:
            end = await self._end_of(named)
            if cap is not None and self._engine.is_abandoned(end):
                await self._engine.sweep()  # its budget cannot change while it has a driver, even a dead one
                end = await self.get(end.id)
            try:
                return await self._prepared(end, cap, here=here)
            except AlreadyContinued:  # somebody was faster: go on from there
                await self._require_total(end, cap)
                named = await self.get(named.id)  # raises if it was deleted meanwhile

    async def _require_total(self, run: Run, cap: Microdollars | None) -> None:
        """Raise Conflict when a run was continued meanwhile with another budget than the one that is asked for."""
        end = await self.end_of_lineage(run)
        if cap is not None and end.id != run.id and end.cap != cap:
            total = "no budget" if end.cap is None else f"a budget of {show_usd(end.cap)}"
            raise Conflict(
                f"run {run.id} was continued meanwhile as run {end.id} with {total}",
                suggestions=(f"muster runs show {end.id}",),
            )

    async def submit_resume(self, reference: str, *, budget_usd: str | float | None = None) -> Run:
        """Hand the run that goes on to the workers; one that has completed, or is driven, is returned as it is."""
        run = await self.prepare_resume(reference, budget_usd=budget_usd, here=False)
        if run.submitted and run.state is RunState.QUEUED:
            return await self._announce(run)
        if run.state is RunState.COMPLETED or (run.is_driven and not self._engine.is_abandoned(run)):
            return run
        if run.is_driven:
            await self._engine.sweep()
        try:
            return await self.queue(run.id)
        except Conflict:  # somebody was faster, and drives it, or has done so
            return await self.get(run.id)

    async def _require_root(self, run: Run) -> None:
        """Raise Conflict for a child, which only the run above all others continues."""
        root = run
        while root.parent is not None:
            root = await self.get(root.parent)
        if root.id != run.id:
            raise Conflict(
                f"run {run.id} is a child of run {root.id}, which continues it",
                suggestions=(f"muster runs resume {root.id}",),
            )

    async def _end_of(self, named: Run) -> Run:
        """Return the end of the lineage of a run; raises Conflict when that has completed and was deleted."""
        end = await self.end_of_lineage(named)
        if end.continued_by is not None:
            raise Conflict(
                f"run {named.id} completed as run {end.continued_by}, which was deleted; there is nothing to resume",
                suggestions=(f"muster runs fork {end.id} --from KEY",),
            )
        return end

    async def _prepared(self, end: Run, cap: Microdollars | None, *, here: bool) -> Run:
        if end.state is RunState.COMPLETED:
            return end
        if end.is_driven and not self._engine.is_abandoned(end):
            return _driven_elsewhere(end, cap, here=here)
        if here:
            self._require_not_beginning(end.id)
            await self.require_batches(end.id)
        if end.state in TERMINAL:
            replayed = end.origin is not None and end.origin.reuse in REPLAYS  # then nobody is asked now either
            reuse = end.origin.reuse if end.origin and replayed else Reuse.REPLIES
            budgets = await self._engine.budgets_of(end)
            return await self._descend(end, reuse, cap=cap, budgets=budgets, submitted=not here)
        await self._require_counted(end)
        if cap is not None:
            try:
                await self._store.runs.set_cap(end.id, cap, end.cap)
            except Conflict:  # somebody may have taken it up since it was read
                moved = await self._end_of(end)
                if moved.state not in TERMINAL and (not moved.is_driven or self._engine.is_abandoned(moved)):
                    raise
                return await self._prepared(moved, cap, here=here)
        elif end.calls.done < end.calls.total:  # else what is left to do may cost nothing
            require_left(end.id, end.cap, end.total.settled)
        return await self.get(end.id)

    def _require_not_beginning(self, run: RunId) -> None:
        if self._engine.is_beginning(run):
            raise Conflict(
                f"run {run} is being started by this process",
                suggestions=("use the handle that started or resumed it", f"muster runs watch {run}"),
            )

    async def require_batches(self, run: RunId) -> None:
        """Raise BadConfiguration when a batch that a run waits for is out of reach: a key is missing or another's."""
        for batch in (await self.batches_of(run)).under_way:
            self._directory.reopen(batch.endpoint)

    async def queue(self, run: RunId) -> Run:
        """Hand a run that stands still to the workers."""
        return await self._announce(await self._store.runs.requeue(run, self._clock.now()))

    async def _announce(self, run: Run) -> Run:
        """Tell workers on other machines of a run; without the queue they find it in the store a little later.

        A run of a job is offered to the worker that took the job: another that was told would only be in its way.
        """
        if self._queue is not None and not self._user.queued:
            with contextlib.suppress(QueueFailed):
                await self._queue.get().announce(run)
        return run

    async def fork(self, reference: str, key: str, *, budget_usd: str | float | None = None) -> Run:
        """Make a run that takes over everything before a key and asks anew from there on."""
        return await self._fork(reference, key, budget_usd, submitted=False)

    async def submit_fork(self, reference: str, key: str, *, budget_usd: str | float | None = None) -> Run:
        """Make such a run for the workers."""
        return await self._announce(await self._fork(reference, key, budget_usd, submitted=True))

    async def _fork(self, reference: str, key: str, budget_usd: str | float | None, *, submitted: bool) -> Run:
        run = await self.find(reference)
        if await self._store.journal.find(run.id, key) is None:
            raise NotFound(
                f"run {run.id} has no entry under the key {key!r}", suggestions=(f"muster runs show {run.id} --calls",)
            )
        cap = parse_budget(budget_usd) or run.cap
        return await self._descend(run, Reuse.REPLIES, cap=cap, fork_key=key, submitted=submitted)

    async def replay(self, reference: str) -> Run:
        """Make a run that takes every outcome from another and makes no calls."""
        run = await self.find(reference)
        return await self._descend(run, Reuse.REPLAY, cap=run.cap)

    async def _descend(
        self,
        run: Run,
        reuse: Reuse,
        *,
        cap: Microdollars | None,
        fork_key: str | None = None,
        budgets: Budgets | None = None,
        submitted: bool = False,
    ) -> Run:
        await self._require_payable()
        id_, now = self.new_id(), self._clock.now()
        new = descendant(id_, now, run, reuse, cap=cap, fork_key=fork_key, budgets=budgets)
        new = replace(new, request=self._user.request, submitted=submitted)  # in one step: it may die after this
        return await self._engine.create(new, self._user.budget, self._user.level)


def _driven_elsewhere(run: Run, cap: Microdollars | None, *, here: bool) -> Run:
    """Return a run that another process drives, for whoever only wants it done; raises Conflict for all others."""
    if here:
        require_not_driven(run)
    if cap is not None and cap != run.cap:
        total = "no budget" if run.cap is None else f"a budget of {show_usd(run.cap)}"
        raise Conflict(
            f"run {run.id} is being executed with {total}, which cannot change meanwhile",
            suggestions=(f"muster runs watch {run.id}", f"muster runs cancel {run.id}"),
        )
    return run


def require_not_driven(run: Run) -> None:
    """Raise Conflict for a run that a living process drives."""
    if run.is_driven:
        raise Conflict(
            f"run {run.id} is being executed by {run.lease.driver}",
            suggestions=(f"muster runs watch {run.id}", f"muster runs cancel {run.id}"),
        )
