"""How far a chain is, computed from its run, its events and what its steps left in the journal. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from muster.domain.entry import Event
from muster.domain.run import DRIVEN, TERMINAL, Run, RunState
from muster.pool.chains.chain import ChainSpec, StepRecord, StepStatus, numbered
from muster.pool.chains.isolation import CHANGES_EVENT

ENDED = frozenset({StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.SKIPPED})
SUCCEEDED = frozenset({StepStatus.COMPLETED, StepStatus.SKIPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class RowProgress:
    """How one row of inputs stands."""

    index: int
    status: StepStatus
    error: str = ""
    output: str | None = None  # None: it has none, or it was not read
    branch: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainProgress:
    """A chain as it stands: of a run with rows its rows, of any other its steps."""

    run: Run
    chain: str
    steps: tuple[StepRecord, ...]
    rows: tuple[RowProgress, ...] = ()
    worktree: str = ""
    branch: str = ""
    summary: str = ""  # of what the branch holds
    setup: str = ""  # the command that prepares its working tree just now
    repository: Mapping[str, Any] = field(default_factory=dict)  # what changed in the user's meanwhile, if anything
    partial_output: str = ""  # of the step that is running, a second old at most

    @property
    def total(self) -> int:
        """Return how many steps there are, or rows."""
        return len(self.rows) or len(self.steps)

    @property
    def completed(self) -> int:
        """Return how many of them are done."""
        if self.rows:
            return sum(row.status is StepStatus.COMPLETED for row in self.rows)
        return sum(step.status is StepStatus.COMPLETED for step in self.steps)

    @property
    def current(self) -> tuple[int, str] | None:
        """Return the number and name of the step that is running, or at which the chain failed."""
        for wanted in (StepStatus.RUNNING, StepStatus.FAILED):
            for number, step in enumerate(self.steps, 1):
                if step.status is wanted:
                    return number, step.name
        return None

    @property
    def cost(self) -> int:
        """Return what all steps cost together, in microdollars."""
        return sum(step.cost for step in self.steps)


def chain_progress(
    run: Run, spec: ChainSpec, events: Iterable[Event], outputs: Mapping[str, StepRecord]
) -> ChainProgress:
    """Return how a run stands; `outputs` are the records of steps that are done."""
    told = list(events)
    changes = next((event.data for event in told if event.kind == CHANGES_EVENT), {})
    if spec.rows:
        return ChainProgress(run=run, chain=spec.chain.name, steps=(), rows=_rows(run, spec, told), repository=changes)
    steps = {step.name: StepRecord(name=step.name, status=StepStatus.PENDING) for _, step in numbered(spec.chain)}
    for event in told:
        name = event.data.get("name")
        if isinstance(name, str) and name in steps:
            steps[name] = _after(steps[name], event)
    found = (_completed(step, outputs) for step in steps.values())
    tree = {event.kind: event.data for event in told if event.kind in ("chain.tree", "chain.saved")}
    return ChainProgress(
        run=run,
        chain=spec.chain.name,
        steps=tuple(_at_rest(step, run) for step in found),
        worktree=str(tree.get("chain.tree", {}).get("path", "")),
        branch=str((tree.get("chain.saved") or tree.get("chain.tree") or {}).get("branch", "")),
        summary=str(tree.get("chain.saved", {}).get("summary", "")),
        setup=_setup(run, told),
        repository=changes,
    )


def _setup(run: Run, events: Iterable[Event]) -> str:
    """Return the command that prepares the tree of a chain whose first step has not begun."""
    told = [event for event in events if event.kind in ("chain.setup", "chain.step.started")]
    running = run.state is RunState.RUNNING and bool(told) and told[-1].kind == "chain.setup"
    return str(told[-1].data["command"]) if running else ""


def _after(step: StepRecord, event: Event) -> StepRecord:
    data: Mapping[str, Any] = event.data
    if event.kind == "chain.step.started":
        return replace(step, status=StepStatus.RUNNING)
    if event.kind == "chain.step.failed":
        return replace(step, retries_used=step.retries_used + 1, cost=step.cost + int(data["cost"]))
    if event.kind != "chain.step.ended":
        return step
    return replace(
        step,
        status=StepStatus(data["status"]),
        output=str(data.get("output") or ""),
        cost=int(data["cost"]),
        retries_used=int(data["retries_used"]),
        items=data.get("items"),
        error=str(data.get("error") or ""),
        skipped=str(data.get("skipped") or ""),
    )


def _completed(step: StepRecord, outputs: Mapping[str, StepRecord]) -> StepRecord:
    known = outputs.get(step.name)
    return step if known is None or step.status not in SUCCEEDED else known


def _at_rest(step: StepRecord, run: Run) -> StepRecord:
    """Return a step as it is where nobody works on it any more: what was not done is skipped when the run is over."""
    if step.status in ENDED or (run.state in DRIVEN and run.lease.driver is not None):
        return step
    if run.state in TERMINAL:
        return replace(step, status=StepStatus.SKIPPED, skipped=f"the chain ended before: {run.state}")
    return replace(step, status=StepStatus.PENDING)


def _rows(run: Run, spec: ChainSpec, events: Iterable[Event]) -> tuple[RowProgress, ...]:
    told: list[Mapping[str, Any]] = [event.data for event in events if event.kind == "chain.row.ended"]
    ended = {int(data["row"]): data for data in told}
    rest = StepStatus.SKIPPED if run.state in TERMINAL - {RunState.COMPLETED} else StepStatus.PENDING
    return tuple(
        RowProgress(
            index=index,
            status=StepStatus(ended[index]["status"]) if index in ended else rest,
            error=str(ended[index].get("error") or "") if index in ended else "",
        )
        for index in range(len(spec.rows))
    )
