"""Chains: read, planned, started, followed and resumed. `Muster.chains`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.app.base.backend import Backend
from muster.app.base.costs import Quoting
from muster.app.base.file_kinds import require_chain
from muster.app.chains.plan import ChainPlan, ChainPlanner
from muster.app.runs.handle import RunHandle
from muster.app.runs.kind_part import KindPart
from muster.app.runs.options import RunOptions
from muster.app.runs.runs import Runs
from muster.domain.advice import ArgumentAdvice
from muster.domain.canonical import Json
from muster.domain.dispatch import LIVE, Dispatch
from muster.domain.entry import Entry, Event
from muster.domain.errors import BadArgument, BadFile
from muster.domain.ids import RunId
from muster.domain.isolation import Isolation
from muster.domain.run import TERMINAL, Run
from muster.engine.drive import Listener
from muster.git.repository import Git
from muster.git.saved_work import SavedWork
from muster.pool.chains.chain import (
    MAX_ROWS,
    WORKLOAD,
    Chain,
    ChainSpec,
    ChainStep,
    StepRecord,
    StepStatus,
    record_key,
    row_key,
)
from muster.pool.chains.isolation import TREE_KEY, before_key, changes_key, save_tree, worktrees_of
from muster.pool.chains.kind import CHAIN
from muster.pool.chains.order import ChainOrder
from muster.pool.chains.progress import ChainProgress, RowProgress, chain_progress
from muster.pool.chains.reading import NAME, read_chain
from muster.pool.chains.rules import input_flaws
from muster.pool.chains.spec import read_spec, stored
from muster.pool.isolation import GIT_VARIABLES, repository_changes
from muster.pool.setup import TreeSetup
from muster.text import typed
from muster.text.document_tree import Unreadable
from muster.text.files import opened, shown, text_lines
from muster.text.json_documents import read_object

__all__ = [
    "Chain",
    "ChainPlan",
    "ChainProgress",
    "ChainSpec",
    "ChainStep",
    "Chains",
    "StepRecord",
    "StepStatus",
    "read_rows",
]

PAGE = 1000
MAX_LINE = 1_000_000  # bytes of a row
MAX_ROWS_READ = 1_000  # rows whose output is read
MAX_PARTIAL = 10_000  # characters of an output that is being written


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSize:
    """How much a chain has to do."""

    steps: int
    rows: int = 0


class Chains(KindPart):
    """The chains of an open Muster."""

    def __init__(self, backend: Backend, runs: Runs) -> None:
        self._settings, self._store, self._directory = backend.settings, backend.store, backend.directory
        self._runs = runs

    def load(self, path: str | Path) -> Chain:
        """Read a chain, or that of a folder; raises NotFound, or BadFile with everything that is wrong."""
        path = Path(path)
        file = path / NAME if path.is_dir() else path
        try:
            return read_chain(file)
        except BadFile:
            require_chain(file)
            raise

    def spec(
        self,
        chain: Chain,
        given: Mapping[str, Json] | None = None,
        *,
        rows: Sequence[Mapping[str, Json]] = (),
        folder: str | Path = ".",
    ) -> ChainSpec:
        """Return the spec of a run; raises BadArgument for inputs that the chain does not have, or lacks."""
        shared = dict(given or {})
        spec = ChainSpec(chain=chain, folder=str(Path(folder).absolute()), input=shared, rows=tuple(rows))
        spec = self._with_tree(spec) if chain.isolation not in (None, Isolation.NONE) else spec
        _require_inputs(chain, shared, rows)
        return read_spec(stored(spec))

    def ordered(
        self,
        order: ChainOrder,
        chain: Chain,
        given: Mapping[str, Json] | None = None,
        *,
        rows: Sequence[Mapping[str, Json]] = (),
        folder: str | Path = ".",
    ) -> ChainSpec:
        """Return the spec of a run that was ordered; raises BadArgument as `spec` does."""
        return self.spec(chain.with_effort(order.model_effort), given, rows=rows, folder=folder)

    def plan(self, spec: ChainSpec, dispatch: Dispatch = LIVE, quoting: Quoting = Quoting.ALL) -> ChainPlan:
        """Return what a chain would do and cost; raises what would keep it from being done.

        What steps give is not known before: it is counted with the most that their agents can write, and that of
        commands with 10,000 characters.
        """
        path = self._settings.variables.get("PATH")
        return ChainPlanner(self._directory, spec, dispatch, quoting, path=path).survey()

    async def start(
        self, spec: ChainSpec, options: RunOptions | None = None, *, on_delta: Listener | None = None
    ) -> RunHandle:
        """Start a chain in this process; raises before anything is stored when a step could not be done."""
        spec, chosen = await self._prepared(spec, options)
        return await self._runs.start(WORKLOAD, stored(spec), chosen, on_delta=on_delta)

    async def _prepared(self, spec: ChainSpec, options: RunOptions | None) -> tuple[ChainSpec, RunOptions]:
        """Return what is run and how; raises when a step could not be done, or no working tree could be made."""
        chosen = options or self._runs.options()
        self.plan(spec, chosen.dispatch, Quoting.FIRST)
        isolation = await self.isolation_of(spec)
        if isolation is not Isolation.NONE:
            spec = self._with_tree(replace(spec, chain=replace(spec.chain, isolation=isolation)))
            await worktrees_of(spec).check()
        compares = isolation is not Isolation.NONE or (
            self._changes_files(spec) and await Git(Path(spec.folder)).is_inside()
        )
        return replace(spec, compares=compares, git_environment=self._git_environment() if compares else {}), chosen

    async def isolation_of(self, spec: ChainSpec) -> Isolation:
        """Return where a chain works: as it says, else in a worktree if agents of it change files in git."""
        if spec.chain.isolation is not None:
            return spec.chain.isolation
        in_git = self._changes_files(spec) and await Git(Path(spec.folder)).root() is not None
        return Isolation.WORKTREE if in_git else Isolation.NONE

    async def folder_note(self, spec: ChainSpec) -> str:
        """Return what is to be told of a chain whose agents change files of the user's; empty of any other."""
        if not self._changes_files(spec) or await self.isolation_of(spec) is not Isolation.NONE:
            return ""
        why = "its isolation is none" if spec.chain.isolation else f"{spec.folder} is not in a git repository"
        return f"agents of the chain {spec.chain.name} work in your own files: {why}"

    def _changes_files(self, spec: ChainSpec) -> bool:
        return any(step.agent and self._directory.changes_files(step.agent) for step in spec.chain.steps)

    def _with_tree(self, spec: ChainSpec) -> ChainSpec:
        """Return a spec with what its working tree is made with."""
        pool = self._settings.pool
        return replace(
            spec,
            git_environment=self._git_environment(),
            copy=pool.copy,
            setup=TreeSetup(commands=pool.setup_commands, seconds=pool.setup_timeout_secs),
        )

    def _git_environment(self) -> dict[str, str]:
        variables = self._settings.variables
        return {name: variables[name] for name in GIT_VARIABLES if name in variables}

    async def save(self, run: Run) -> SavedWork | None:
        """Commit what a chain that is at rest left in its working tree to its branch; None when it has no tree.

        What changed in the user's repository is kept too. A chain does both by itself when it completes or fails; after
        a cancel, a crash or a timeout it is done here.
        """
        if run.is_driven:
            return None
        await self._keep_changes(run)
        entry = await self._store.journal.find(run.id, TREE_KEY)
        if entry is None or entry.value is None:
            return None
        return await save_tree(read_spec(run.spec), str(entry.value))

    async def _keep_changes(self, run: Run) -> None:
        """Keep what changed in the user's repository during a run that was stopped; later changes are not of it."""
        before = await self._untold(run)
        if before is not None and await self._store.records.find_figures(run.id, before.digest) is None:
            found = await repository_changes(worktrees_of(read_spec(run.spec)), before.value)
            await self._store.records.keep_figures(run.id, before.digest, found)

    async def _untold(self, run: Run) -> Entry | None:
        """Return the user's repository before a run that ended without telling what changed in it."""
        if run.state not in TERMINAL or await self._store.journal.find(run.id, changes_key(run.id)) is not None:
            return None
        return await self._store.journal.find(run.id, before_key(run.id))

    async def submit(self, spec: ChainSpec, options: RunOptions | None = None) -> RunHandle:
        """Store a chain for the workers."""
        spec, chosen = await self._prepared(spec, options)
        return await self._runs.submit(WORKLOAD, stored(spec), chosen)

    async def resume(self, reference: str, *, budget_usd: str | float | None = None) -> RunHandle:
        """Go on with a chain: steps that are done are not done again, a failed one is shown its error."""
        run = await self._runs.prepare_resume((await self.find(reference)).id, budget_usd=budget_usd)
        return self._runs.go_on(run)

    def drive(self, run: Run) -> RunHandle:
        """Drive a chain that is stored."""
        return self._runs.drive(run)

    async def find(self, reference: str) -> Run:
        """Return a chain by its reference; `last` is the newest chain."""
        return await self._runs.of_kind(CHAIN, reference)

    async def after_end(self, run: Run) -> None:
        """Commit what a chain left in its working tree."""
        await self.save(run)

    async def output(self, run: Run) -> str:
        """Return the output of the last step that has one."""
        steps = (await self.progress_of(run)).steps
        return next(
            (
                str(step.output)
                for step in reversed(steps)
                if step.status in (StepStatus.COMPLETED, StepStatus.FAILED) and step.output
            ),
            "",
        )

    async def list(self, limit: int = 20) -> Sequence[Run]:
        """Return the newest chains, without those that are parts of others."""
        return await self._runs.page(workloads=(WORKLOAD,), roots=True, limit=limit)

    def size(self, run: Run) -> ChainSize:
        """Return how many steps a chain has, and how many rows of inputs."""
        spec = read_spec(run.spec)
        return ChainSize(steps=len(spec.chain.steps), rows=len(spec.rows))

    async def progress(self, reference: str) -> ChainProgress:
        """Return how far a chain is, whoever drives it."""
        return await self.progress_of(await self.find(reference))

    async def progress_of(self, run: Run) -> ChainProgress:
        """Return how far a chain is."""
        spec = read_spec(run.spec)
        outputs: dict[str, StepRecord] = {}
        for step in spec.chain.steps if not spec.rows else ():
            entry = await self._store.journal.find(run.id, record_key(step.name))
            if entry is not None and entry.value is not None:
                outputs[step.name] = typed.convert(entry.value, StepRecord)
        found = chain_progress(run, spec, await self._events(run), outputs)
        if spec.compares and (before := await self._untold(run)) is not None:
            kept = await self._store.records.find_figures(run.id, before.digest)
            found = replace(found, repository=kept or {})
        found = replace(found, rows=tuple([await self._with_output(run, row) for row in found.rows]))
        current = found.current
        written = await self._store.events.partials(run.id)
        texts = [text for key, text in written.items() if current and key.startswith(f"step/{current[1]}/")]
        return replace(found, partial_output=texts[-1][-MAX_PARTIAL:] if texts else "")

    async def _with_output(self, run: Run, row: RowProgress) -> RowProgress:
        """Return a row with what it gave, once the chain is over: until then it would be read again and again."""
        if run.state not in TERMINAL or row.status is not StepStatus.COMPLETED or row.index >= MAX_ROWS_READ:
            return row
        if isinstance(run.result, dict):
            result = run.result["rows"][row.index]
            return replace(row, output=result["output"], branch=result["branch"])
        entry = await self._store.journal.find(run.id, row_key(row.index))
        child = None if entry is None else await self._store.runs.get(RunId(str(entry.value)))
        result = child.result if child is not None and isinstance(child.result, dict) else {}
        return replace(row, output=result.get("output"), branch=result.get("saved", {}).get("branch"))

    async def _events(self, run: Run) -> Sequence[Event]:
        found: list[Event] = []
        while page := await self._store.events.read(run.id, found[-1].seq if found else 0, PAGE):
            found += page
        return found


def read_rows(path: Path) -> Sequence[Mapping[str, Json]]:
    """Read inputs, one JSON object a line; raises BadFile with the line that is not one."""
    rows: list[Mapping[str, Json]] = []
    try:
        with opened(path) as file:
            for number, line in enumerate(text_lines(file, MAX_LINE), 1):
                if line.strip():
                    rows.append(_row(path, number, line))
    except Unreadable as error:
        raise BadFile(shown(path), error.message, line=error.line) from None
    if not rows:
        raise BadFile(shown(path), "has no rows: write one JSON object a line")
    return rows


def _row(path: Path, number: int, line: str) -> Mapping[str, Json]:
    found = read_object(line, fenced=False)
    if isinstance(found, str):
        raise BadFile(shown(path), found, line=number)
    if number > MAX_ROWS:
        raise BadFile(shown(path), f"has more than {MAX_ROWS:,} rows", line=number)
    return found


def _require_inputs(chain: Chain, shared: Mapping[str, Json], rows: Sequence[Mapping[str, Json]]) -> None:
    """Raise BadArgument for all inputs that a chain does not have, or lacks; of rows, for those of the first."""
    for index, row in enumerate(rows or [{}]):
        given = {**shared, **row}
        if found := list(input_flaws(chain, given)):
            where = f"chain {chain.name}: row {index + 1}" if rows else f"chain {chain.name}"
            flaws = [replace(flaw, path=f"input.{flaw.path}") for flaw in found]
            required = (name for name, one in chain.inputs.items() if one.required)
            ways = tuple(ArgumentAdvice("input", "…", entry=name, words="{}") for name in required)
            raise BadArgument.of(flaws, about=where, suggestions=ways)
