"""Findings given to an agent that changes files: in a working tree, verified again, left on a branch. `Muster.repairs`.

Each step is found again by its name, so that a repair that was interrupted goes on where it was.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.app.base.backend import Backend
from muster.app.base.costs import Quoting
from muster.app.pool.pool import Pool
from muster.app.pool.task_queries import Task
from muster.app.pool.trees import SavedTaskWork
from muster.app.runs.options import RunOptions
from muster.app.runs.runs import Runs
from muster.app.verify.repair import Fixed
from muster.app.verify.request import (
    AgentWork,
    ConcludedVerification,
    PartOfRepair,
    Prepared,
    Repair,
    StartedVerification,
    VerifyRequest,
)
from muster.app.verify.verifications import Verifications, declared
from muster.domain.errors import BadArgument, BudgetExhausted, Interrupted, MusterError, NotFound, StopRun
from muster.domain.isolation import Isolation
from muster.domain.money import Microdollars, show_usd
from muster.domain.run import TERMINAL, Run, RunState
from muster.domain.task import TaskState
from muster.git.branch_changes import CommittedTree
from muster.git.repository import Git
from muster.git.repository_changes import WATCHED, decides_check_outs
from muster.git.saved_work import SavedWork
from muster.pool.tasks import TaskSpec
from muster.verify.agents.checker_programs import outside_files_of
from muster.verify.declaration.verification import RepairTerms, Verification
from muster.verify.findings.assignment import repair_prompt
from muster.verify.findings.repair_review import AgentChanges, RepairReview, review, together_with
from muster.verify.sources.files import EXCLUDED, NOBODY, Bounds, select_again
from muster.verify.spec import read_spec, stored

MAX_DIFF = 100_000  # bytes of a patch that are shown
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

    def left(self, *others: Run) -> Microdollars | None:
        """Return what is left of its budget; None when it has none."""
        if self.run.cap is None:
            return None
        return Microdollars(self.run.cap - sum(one.total.settled for one in (self.run, *others)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reviewed:
    """The work of an agent without what is known to decide about the verification, and what was said of it."""

    work: SavedWork
    review: RepairReview
    apart: str = ""  # the patch of what was restored


class CodeRepairs:
    """Repairs by agents that change files."""

    def __init__(self, backend: Backend, runs: Runs, pool: Pool, verifications: Verifications) -> None:
        self._settings, self._directory = backend.settings, backend.directory
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
            watched=await outside_files_of(found.spec, self._settings.variables.get("PATH", "")),
            budget_usd=None if left is None else left / 1_000_000,
        )
        return await self._pool.tasks.submit(spec, name=name, tags=found.run.tags)

    async def _done(self, found: _Found, task: Task) -> Task:
        done = await self._pool.wait(task)
        if done.state is TaskState.PENDING and not done.refusal:
            way = f"muster verify resume {found.run.id}"
            why = f"the repair, task {done.title}, was interrupted; continue with: {way}"
            raise Interrupted(why, suggestions=(way,))
        return done

    async def _checked(self, found: _Found, task: Task) -> Repair:
        """Return what a task came to, and the verification of it."""
        nothing = Repair(before=found.run, fixed=Fixed(), work=await self._work(found, task))
        if task.state is not TaskState.COMPLETED:
            why = task.refusal or str((task.run.error or {}).get("message", ""))
            return replace(nothing, obstacle=f"task {task.title} is {task.state}: {why}")
        if task.run.overdraft is not None:
            return replace(nothing, obstacle=f"task {task.title}: {task.run.overdraft['message']}")
        saved = await self._pool.trees.saved(task.id)
        if not saved.work.changed:
            return replace(nothing, obstacle=f"{found.terms.agent} changed nothing")
        if saved.work.changed > len(saved.work.files):
            return replace(nothing, obstacle=f"{saved.work.changed:,} changed files are too many to verify again")
        reviewed = await self._reviewed(found, task, saved)
        made = await self._made(found, task, reviewed)
        if not reviewed.review.touched:
            why = f"{found.terms.agent} changed no file with a finding"
            return replace(made, obstacle="; ".join(filter(None, (why, made.obstacle))))
        try:
            again = await self._started(found, task, await self._pool.trees.whole_of(reviewed.work), made.fixed.changed)
        except StopRun:
            raise
        except MusterError as error:
            return replace(made, obstacle=f"what was changed cannot be verified: {error.message}")
        unasked = {one.path for one in again.prepared.spec.left_out if one.why in (NOBODY, EXCLUDED)}
        changed = tuple(path for path in made.fixed.changed if path not in unasked - {*found.spec.files})
        return replace(made, again=again, fixed=Fixed(changed=changed))

    async def _work(self, found: _Found, task: Task) -> AgentWork:
        repository = {name: task.saved.get(name) for name in ("repository_changes", "repository_unknown")}
        work = AgentWork(agent=found.terms.agent, task=task.id, cost=task.run.total.settled, repository=repository)
        if not task.branch:
            return work
        diff = await self._pool.trees.diff(task.id, MAX_DIFF)
        return replace(work, branch=task.branch, summary=task.summary or "", diff=diff)

    async def _reviewed(self, found: _Found, task: Task, saved: SavedTaskWork) -> _Reviewed:
        """Return the work of a task with what is known to decide about a verification as it was before.

        The branch keeps what was changed in its history, so that a repair that goes on sees it too.
        """
        trees, work = self._pool.trees, saved.work
        changes = AgentChanges(
            history=await trees.history(work),
            files=work.files,
            lines=await trees.lines_changed(work),
            settings=[what.removeprefix("setting ") for what in _changed_beside(task) if decides_check_outs(what)],
            outside=[what.removeprefix("file ") for what in _changed_beside(task) if what.startswith(WATCHED)],
            unknown=str(task.saved.get("repository_unknown") or ""),
        )
        seen = review(found.terms.agent, found.spec, found.first.report.summary.merged, changes)
        if not seen.decisive:
            return _Reviewed(work=work, review=seen)
        now = [file.path for file in work.files if file.path in seen.decisive]
        before = work if now else replace(work, head=f"{work.head}~1")  # it was restored when this was begun
        apart = await trees.diff_of(before, now or seen.decisive, MAX_DIFF)
        if now:
            message = f"Files that decide about the verification of {found.run.id}"
            work = await trees.restore(task.id, work, now, message)
        return _Reviewed(work=work, review=seen, apart=apart)

    async def _made(self, found: _Found, task: Task, reviewed: _Reviewed) -> Repair:
        """Return what was changed, and which part of it the findings must be gone with."""
        trees, work, seen = self._pool.trees, reviewed.work, reviewed.review
        told = await self._work(found, task)
        if seen.elsewhere:
            diff = await trees.diff_of(work, seen.taken, MAX_DIFF) if seen.taken else ""
            elsewhere = await trees.diff_of(work, seen.elsewhere, MAX_DIFF)
            told = replace(told, diff=diff, elsewhere=elsewhere)
        part = None
        if seen.elsewhere and not seen.refusals:
            message = f"Changes to files with findings of run {found.run.id}"
            part = PartOfRepair(
                files=seen.taken, others=seen.elsewhere, tree=await trees.part_of(work, seen.taken, message)
            )
        return Repair(
            before=found.run,
            fixed=Fixed(changed=tuple(file.path for file in work.files)),
            work=replace(told, apart=reviewed.apart),
            part=part,
            obstacle="; ".join(seen.refusals),
        )

    async def verify_part(self, first: ConcludedVerification, repair: Repair, whole: Run) -> StartedVerification | None:
        """Start to verify the changes to files with findings alone; None when no others were made, or it is decided.

        Whether findings are gone is decided by that: other files could decide what is found.
        """
        if repair.part is None or repair.work is None or not repair.part.files:
            return None
        spec = read_spec(first.report.run.spec)
        if spec.repair is None:
            return None
        found = _Found(first=first, spec=spec, terms=spec.repair)
        task = await self._pool.tasks.get(repair.work.task)
        return await self._started(found, task, repair.part.tree, repair.part.files, whole)

    def concluded(self, repair: Repair, part: ConcludedVerification | None) -> Repair:
        """Return a repair that passed as a whole, with what the verification of its part says against it."""
        if repair.part is None:
            return repair
        if part is not None and part.ok:
            return replace(repair, part=None)
        if part is not None and part.report.run.state is not RunState.COMPLETED:
            run = part.report.run
            why = f"the changes to files with findings alone could not be verified: run {run.id} is {run.state}"
            return replace(repair, obstacle=why)
        return replace(repair, obstacle=together_with(repair.part.others))

    async def tidy(self, verification: StartedVerification | None) -> None:
        """Remove the tree in which a verification took place, if it is over."""
        if verification is None or verification.handle is None:
            return
        if (await verification.handle.run()).state in TERMINAL:
            await self._pool.trees.remove(Path(verification.prepared.spec.root).name)

    async def _spec(self, found: _Found, root: Path, changed: tuple[str, ...]) -> Verification:
        """Return how the files of a tree are verified: by whom and what the first verification was made with."""
        first = found.spec
        asked = tuple(one for one in first.verifiers if _is_asked(first, one.name, one.wave))
        bounds = Bounds(limits=first.limits, exclude=found.terms.exclude, asked=asked)
        selected = await select_again(root, sorted({*first.files, *changed}), bounds)
        unasked = {one.path for one in selected.left_out if one.why in (NOBODY, EXCLUDED)} - {*first.files}
        if lost := sorted({*first.files, *changed} - unasked - {*selected.files}):  # deleted, marked as generated, …
            raise BadArgument(f"no longer verifiable: {', '.join(lost)}")
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
        return read_spec(stored(spec))

    async def _started(
        self, found: _Found, task: Task, tree: CommittedTree, changed: tuple[str, ...], *spent: Run
    ) -> StartedVerification:
        """Return the verification of some files: the one that there is, resumed if need be, else a new one.

        It takes place in a tree of its own, prepared as that of the task was: whatever the agent left where git does
        not see it, such as compiled modules and ignored files, is not there.
        """
        name, run = f"fixed-{found.run.id}-{tree.tree[:12]}", found.run
        known = await self._known(name)
        if known is not None and (known.state is RunState.COMPLETED or known.is_driven):
            return StartedVerification(prepared=_prepared(found, read_spec(known.spec)), handle=self._runs.watch(known))
        root = await self._pool.trees.check_out(task.id, name, tree.commit)
        if known is not None:
            going_on = await self._runs.prepare_resume(known.id)
            prepared = _prepared(found, read_spec(known.spec))
            return StartedVerification(prepared=prepared, handle=self._runs.go_on(going_on))
        prepared = _prepared(found, await self._spec(found, root, changed))
        left = found.left(task.run, *spent)
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

    async def _known(self, name: str) -> Run | None:
        try:
            known = await self._runs.find(name)
        except NotFound:
            return None
        return await self._verifications.find(known.id)


def _prepared(found: _Found, spec: Verification) -> Prepared:
    return Prepared(spec=spec, agents_file=f"run {found.run.id}", left_out=spec.left_out)


def _changed_beside(task: Task) -> Sequence[str]:
    """Return what changed beside the branch of a task while its agent worked."""
    return [str(one["what"]) for one in task.saved.get("repository_changes", ())]


def _is_asked(spec: Verification, name: str, wave: int) -> bool:
    return (not spec.agents or name in spec.agents) and (not spec.waves or wave in spec.waves)
