"""Findings given to an agent that changes files: in a working tree, verified again, left on a branch. `Muster.repairs`.

Each step is found again by its name, so that a repair that was interrupted goes on where it was.
"""

import asyncio
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.app.backend import Backend
from muster.app.costs import Quoting
from muster.app.pool.pool import Pool
from muster.app.pool.task_queries import Task
from muster.app.pool.trees import SavedTaskWork
from muster.app.runs.options import RunOptions
from muster.app.runs.runs import Runs
from muster.app.verify.repair import Fixed
from muster.app.verify.request import (
    AgentWork,
    ConcludedVerification,
    Prepared,
    Repair,
    StartedVerification,
    VerifyRequest,
)
from muster.app.verify.verifications import Verifications, declared
from muster.domain.errors import BadArgument, BudgetExhausted, Interrupted, MusterError, NotFound, StopRun
from muster.domain.money import Microdollars, show_usd
from muster.domain.run import Run, RunState
from muster.git.layout import Isolation
from muster.git.repository import Git
from muster.git.saved_work import SavedWork
from muster.pool.tasks import TaskSpec, TaskState
from muster.text.redaction import redact
from muster.verify.files import EXCLUDED, NOBODY, Bounds, select_again
from muster.verify.findings.assignment import repair_prompt
from muster.verify.findings.checker_files import CACHE, checker_files, silenced
from muster.verify.journal import WORKLOAD
from muster.verify.reports.run import open_waves_run
from muster.verify.spec import read_spec, stored
from muster.verify.verification import RepairTerms, Verification

MOST_DIFF = 100_000  # bytes of a patch that are shown
PYTEST = "pytest"  # the parser of agents whose findings are failed tests
_MOST_NAMED = 10  # files in a sentence
OnTask = Callable[[Task], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A verification that did not pass, and what is to be done about it."""

    first: ConcludedVerification
    spec: Verification
    terms: RepairTerms

    @property
    def run(self) -> Run:
        return self.first.report.run

    @property
    def repairable(self) -> frozenset[str]:
        """Files of which one must be changed by a repair: those with a finding; a failed test fails for any of them."""
        tests = {one.name for one in self.spec.verifiers if one.parser == PYTEST}
        merged = self.first.report.summary.merged
        with_findings = {one.finding.file for one in merged}
        return frozenset(with_findings | ({*self.spec.files} if any(tests & {*one.by} for one in merged) else set()))

    def left(self, *others: Run) -> Microdollars | None:
        """Return what is left of its budget; None when it has none."""
        if self.run.cap is None:
            return None
        return Microdollars(self.run.cap - sum(one.total.settled for one in (self.run, *others)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Restored:
    """The work of an agent without what it did to the verification itself."""

    work: SavedWork
    why: str = ""  # it is not accepted
    apart: str = ""  # the patch of what was restored
    unknown: bool = False  # it cannot be restored, and what a checker says is worth nothing


class CodeRepairs:
    """Repairs by agents that change files."""

    def __init__(self, backend: Backend, runs: Runs, pool: Pool, verifications: Verifications) -> None:
        self._settings, self._directory, self._store = backend.settings, backend.directory, backend.store
        self._runs, self._pool, self._verifications = runs, pool, verifications

    async def begin(self, request: VerifyRequest) -> StartedVerification:
        """Start a verification whose findings are repaired; raises before anything is stored when that cannot be.

        Among the agents of the request, one of muster.toml that changes files repairs; the others verify. Without one
        nothing but a verification is started.
        """
        request.require_repairable()
        choice, folder = request.choice, Path(request.folder)
        declaration = await declared(self._settings, folder, choice.agents_file)
        others = [name for name in choice.agents if name not in {agent.name for agent in declaration.agents}]
        coders = [name for name in others if self._directory.changes_files(name)]
        if len(coders) > 1:
            raise BadArgument(f"only one agent can repair findings, not {len(coders)}: {', '.join(coders)}")
        if unknown := [name for name in others if name not in coders]:
            raise NotFound(
                f"unknown agent {unknown[0]!r}: not in {declaration.file}, and not a CLI agent in muster.toml",
                suggestions=("use a verification agent, or an agent of kind cli or claude-code to repair",),
            )
        if not coders:
            return await self._verifications.begin(request)
        await self._require(coders[0], folder)
        terms = RepairTerms(agent=coders[0], exclude=declaration.exclude)
        verifiers = tuple(name for name in choice.agents if name not in coders)
        return await self._verifications.begin(replace(request, choice=replace(choice, agents=verifiers, repair=terms)))

    def agent_of(self, run: Run) -> str | None:
        """Return who repairs what a verification found; None when nobody does."""
        terms = read_spec(run.spec).repair
        return None if terms is None else terms.agent

    async def repair(self, first: ConcludedVerification, on_task: OnTask = lambda task: None) -> Repair:
        """Have the findings of a verification repaired, and start to verify that; goes on with what was begun before.

        Whatever keeps it from being repaired or verified again is told as the obstacle, and the first verification is
        what counts. Raises Interrupted when this process is told to stop.
        """
        run, spec = first.report.run, read_spec(first.report.run.spec)
        if spec.repair is None:
            raise BadArgument(
                f"run {run.id} was started without an agent that repairs", suggestions=("verify with --fix",)
            )
        found = _Found(first=first, spec=spec, terms=spec.repair)
        try:
            task = await self._assigned(found)
            on_task(task)
            return await self._checked(found, await self._done(found, task))
        except BudgetExhausted as error:
            return Repair(before=run, fixed=Fixed(), obstacle=error.message)
        except StopRun:
            raise
        except MusterError as error:
            return Repair(before=run, fixed=Fixed(), obstacle=f"what was found could not be repaired: {error.message}")

    async def _require(self, agent: str, folder: Path) -> None:
        """Raise what would keep an agent from repairing files: no repository, another one, no slot or key for it."""
        own, verified = await Git(self._settings.folder).root(), await Git(folder).root()
        if verified is None or own is None or own.resolve() != verified.resolve():
            raise BadArgument(
                f"an agent repairs files in a worktree, and {folder} is not in the git repository of the project, "
                f"{self._settings.folder}",
                suggestions=("leave --agent out: --fix alone applies what findings propose",),
            )
        await self._pool.tasks.require(TaskSpec(prompt="repair", agent=agent, isolation=Isolation.WORKTREE))

    async def _assigned(self, found: _Found) -> Task:
        """Return the task of repairing: the one that there is, tried again if it failed, else a new one."""
        name = f"fix-{found.run.id}"
        try:
            task = await self._pool.tasks.get(name)
        except NotFound:
            return await self._new_task(found, name)
        over = task.state in (TaskState.FAILED, TaskState.CANCELED)
        return await self._pool.tasks.retry(task.id) if over else task

    async def _new_task(self, found: _Found, name: str) -> Task:
        merged, left = found.first.report.summary.merged, found.left()
        if not merged:
            raise BadArgument("there is no finding to give to an agent")
        if left is not None and left <= 0:
            raise BudgetExhausted(f"nothing is left of the budget of {show_usd(found.run.cap or 0)} for a repair")
        ref = await self._pool.trees.commit_files(found.spec.files, f"Files that run {found.run.id} verified")
        spec = TaskSpec(
            prompt=repair_prompt(found.first.verdict, merged),
            agent=found.terms.agent,
            isolation=Isolation.WORKTREE,
            ref=ref,
            budget_usd=None if left is None else left / 1_000_000,
        )
        return await self._pool.tasks.submit(spec, name=name, tags=found.run.tags)

    async def _done(self, found: _Found, task: Task) -> Task:
        done = await self._pool.wait(task)
        if done.state is TaskState.PENDING and not done.refusal:
            way = f"muster verify resume {found.run.id}"
            raise Interrupted(f"the repair, task {done.id}, was interrupted; continue with: {way}", suggestions=(way,))
        return done

    async def _checked(self, found: _Found, task: Task) -> Repair:
        """Return what a task came to, and the verification of it."""
        nothing = Repair(before=found.run, fixed=Fixed(), work=await self._work(found, task))
        if task.state is not TaskState.COMPLETED:
            why = task.refusal or str((task.run.error or {}).get("message", ""))
            return replace(nothing, obstacle=f"task {task.id} is {task.state}: {why}")
        if task.run.overdraft is not None:
            return replace(nothing, obstacle=f"task {task.id}: {task.run.overdraft['message']}")
        saved = await self._pool.trees.saved(task.id)
        if not saved.work.changed:
            return replace(nothing, obstacle=f"{found.terms.agent} changed nothing")
        if saved.work.changed > len(saved.work.files):
            return replace(nothing, obstacle=f"{saved.work.changed:,} changed files are too many to verify again")
        restored = await self._restored(found, task, saved)
        changed = tuple(file.path for file in restored.work.files)
        work = replace(await self._work(found, task), apart=redact(restored.apart).text)
        made = replace(nothing, fixed=Fixed(changed=changed), work=work, obstacle=restored.why)
        if restored.unknown or not (found.repairable & set(changed)):
            none = "" if restored.unknown else f"{found.terms.agent} changed no file with a finding"
            return replace(made, obstacle="; ".join(filter(None, (none, made.obstacle))))
        try:
            return await self._verified(found, made, task, saved.path, restored.work)
        except StopRun:
            raise
        except MusterError as error:
            return replace(made, obstacle=f"what was changed cannot be verified: {error.message}")

    async def _work(self, found: _Found, task: Task) -> AgentWork:
        repository = {name: task.saved.get(name) for name in ("repository_changes", "repository_unknown")}
        work = AgentWork(agent=found.terms.agent, task=task.id, cost=task.run.total.settled, repository=repository)
        if not task.branch:
            return work
        diff = redact(await self._pool.trees.diff(task.id, MOST_DIFF)).text
        return replace(work, branch=task.branch, summary=str(task.saved.get("summary", "")), diff=diff)

    async def _restored(self, found: _Found, task: Task, saved: SavedTaskWork) -> _Restored:
        """Return the work of a task with everything that decides about a verification as it was before.

        The branch keeps what was changed in its history, so that a repair that goes on sees it too.
        """
        trees, agent, work = self._pool.trees, found.terms.agent, saved.work
        history = await trees.history(task.id, work)
        files = checker_files(found.spec.verifiers, found.spec.root, history.known, found.spec.files)
        touched = [path for path in history.changed if files.decides(path)]
        await asyncio.to_thread(_drop_caches, saved.path, files.folders)
        unknown = [path for path in history.unknown if not path.endswith("/") and files.decides(path)]
        if unknown:
            why = f"{agent} left files that decide about the verification where git does not see them"
            return _Restored(work=work, unknown=True, why=f"{why}: {', '.join(unknown[:_MOST_NAMED])}")
        if not touched:
            return _Restored(work=work)
        why = f"{agent} changed what decides about the verification: {', '.join(touched[:_MOST_NAMED])}"
        now = [file.path for file in work.files if files.decides(file.path)]
        before = work if now else replace(work, head=f"{work.head}~1")  # it was restored when this was begun
        apart = await trees.diff_of(before, now or touched, MOST_DIFF)
        if now:
            work = await trees.restore(
                task.id, work, now, f"Files that decide about the verification of {found.run.id}"
            )
        return _Restored(work=work, why=why, apart=apart)

    async def _verified(self, found: _Found, made: Repair, task: Task, root: Path, work: SavedWork) -> Repair:
        """Start to verify the files of a tree by whom and what the first verification was made with."""
        first, changed = found.spec, made.fixed.changed
        asked = tuple(one for one in first.verifiers if _is_asked(first, one.name, one.wave))
        bounds = Bounds(limits=first.limits, exclude=found.terms.exclude, asked=asked)
        selected = await select_again(root, sorted({*first.files, *changed}), bounds)
        unasked = {one.path for one in selected.left_out if one.why in (NOBODY, EXCLUDED)} - set(first.files)
        spec = replace(
            first,
            root=str(root),
            source="",
            files=selected.files,
            markers=(),
            left_out=selected.left_out,
            unseen_secrets=selected.unseen_secrets,
            repair=None,
        )
        prepared = Prepared(spec=read_spec(stored(spec)), agents_file=f"run {found.run.id}", left_out=spec.left_out)
        repair = replace(made, fixed=Fixed(changed=tuple(path for path in changed if path not in unasked)))
        if lost := sorted({*first.files, *repair.fixed.changed} - {*selected.files}):  # deleted, marked as generated, …
            return replace(repair, obstacle=f"no longer verifiable: {', '.join(lost)}")
        if quiet := await self._silenced(found, root, repair.fixed.changed):
            told = f"{found.terms.agent} asks checkers to overlook lines of {', '.join(quiet[:_MOST_NAMED])}"
            repair = replace(repair, obstacle="; ".join(filter(None, (repair.obstacle, told))))
        return replace(repair, again=await self._started(found, prepared, task, work.head))

    async def _silenced(self, found: _Found, root: Path, changed: Sequence[str]) -> tuple[str, ...]:
        """Return the changed files that ask more often than before to be overlooked."""
        waves = await open_waves_run(self._store, found.run)
        before = {one.path: "\n".join(one.lines) async for one in waves.sources() if one.path in changed}
        return silenced(before, await asyncio.to_thread(_texts, root, changed))

    async def _started(self, found: _Found, prepared: Prepared, task: Task, head: str) -> StartedVerification:
        """Return the verification of a commit: the one that there is, resumed if need be, else a new one."""
        name, run = f"fixed-{found.run.id}-{head[:12]}", found.run
        try:
            known = await self._runs.find(name)
        except NotFound:
            left = found.left(task.run)
            options = RunOptions(
                name=name,
                tags=run.tags,
                budget=None if left is None else Microdollars(max(left, 1)),  # so little that nobody can be asked
                timeout=run.timeout,
                concurrency=run.concurrency,
                dispatch=run.dispatch,
            )
            plan = self._verifications.plan(prepared.spec, options.dispatch, Quoting.FIRST)
            handle = await self._verifications.start(prepared, options)
            return StartedVerification(prepared=prepared, plan=plan, handle=handle)
        if known.workload != WORKLOAD:
            raise BadArgument(f"run {known.id} is called {name}, and is not a verification")
        if known.state is RunState.COMPLETED or known.is_driven:
            return StartedVerification(prepared=prepared, handle=self._runs.watch(known))
        going_on = await self._runs.prepare_resume(known.id)
        return StartedVerification(prepared=prepared, handle=self._runs.go_on(going_on))


def _drop_caches(root: Path, folders: Iterable[str]) -> None:
    """Remove compiled modules beside the programs of checkers, which need not be those of their sources."""
    for folder in folders:
        for cache in [*(root / folder).rglob(CACHE)]:
            shutil.rmtree(cache, ignore_errors=True)


def _texts(root: Path, paths: Sequence[str]) -> dict[str, str]:
    return {path: (root / path).read_text("utf-8", "replace") for path in paths if (root / path).is_file()}


def _is_asked(spec: Verification, name: str, wave: int) -> bool:
    return (not spec.agents or name in spec.agents) and (not spec.waves or wave in spec.waves)
