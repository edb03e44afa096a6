"""Scale tests: many battles that measure an agent or a prompt. `Muster.battles.scales`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from muster.app.base.backend import Backend
from muster.app.base.costs import Quoting
from muster.app.runs.handle import RunHandle
from muster.app.runs.kind_part import KindPart
from muster.app.runs.options import RunOptions
from muster.app.runs.reports import RunReport
from muster.app.runs.runs import Runs
from muster.battles.goals import read_goals
from muster.battles.kind import SCALE
from muster.battles.order import BattleGoal, PromptVariant
from muster.battles.reports.formats import report_of_scale
from muster.battles.reports.markdown import revision_words
from muster.battles.scale_spec import (
    CONCURRENCY_LIMIT,
    RUNS_LIMIT,
    ScaleSpec,
    known_scale,
    plan_battles,
    read_scale,
    require_limits,
    stored_scale,
)
from muster.battles.scale_summary import PairedComparison, ScaleReport, summarize_scale
from muster.battles.spec import BattleSpec
from muster.battles.summary import BattleReport
from muster.domain.call import ask
from muster.domain.canonical import Json
from muster.domain.dispatch import Dispatch
from muster.domain.errors import BadArgument, Conflict
from muster.domain.run import TERMINAL, Run
from muster.engine.drive import Listener

__all__ = ["BattleGoal", "PairedComparison", "PromptVariant", "ScaleReport", "ScaleSpec", "Scales", "revision_words"]

CheckBattle = Callable[[BattleSpec, Dispatch, Quoting], None]  # raises what would keep a battle from being played


class Scales(KindPart):
    """The scale tests of an open Muster."""

    def __init__(self, backend: Backend, runs: Runs, check: CheckBattle) -> None:
        self._settings, self._store, self._directory = backend.settings, backend.store, backend.directory
        self._runs, self._check = runs, check

    def goals(self, path: str | Path) -> tuple[BattleGoal, ...]:
        """Read a file of goals and personas, YAML or JSON lines; raises BadFile with the line of what is wrong."""
        return read_goals(Path(path))

    def spec(
        self,
        battle: BattleSpec,
        *,
        runs: int | None = None,
        concurrency: int | None = None,
        agents: Iterable[str] = (),
        prompts: Iterable[PromptVariant] = (),
        goals: Iterable[BattleGoal] = (),
        min_goal_rate: float | None = None,
        reviser: str | None = None,
        try_revised: bool = False,
    ) -> ScaleSpec:
        """Return the spec of a scale test; raises BadArgument with everything that is wrong.

        Left out, `runs` is one for each agent, prompt and goal, or as many as are allowed when there is only one of
        each; the reviser is who confirms goals. An empty `reviser` asks nobody for a better prompt.
        """
        named, variants, wanted = tuple(agents), tuple(prompts), tuple(goals)
        sides = dict.fromkeys((*(named or (battle.agent,)), battle.counterpart))
        people = tuple(name for name in sides if self._directory.is_person(name))
        most = self._settings.battles
        each = max(1, len(named)) * max(1, len(variants)) * max(1, len(wanted))
        judge = battle.judges[-1] if battle.judges else ""
        made = ScaleSpec(
            battle=replace(battle, people=people),
            runs=(each if each > 1 else most.runs) if runs is None else runs,
            concurrency=most.concurrency if concurrency is None else concurrency,
            agents=named,
            prompts=variants,
            goals=wanted,
            min_goal_rate=min_goal_rate,
            reviser=judge if reviser is None else reviser,
            try_revised=try_revised,
        )
        checked = self._within_limits(read_scale(stored_scale(made)))
        return replace(checked, battle=replace(checked.battle, media=battle.media))  # with the bytes

    def _within_limits(self, spec: ScaleSpec) -> ScaleSpec:
        most = self._settings.battles
        require_limits(spec, {RUNS_LIMIT: most.runs, CONCURRENCY_LIMIT: most.concurrency})
        return spec

    def check(self, spec: ScaleSpec, dispatch: Dispatch, quoting: Quoting = Quoting.FIRST) -> None:
        """Raise what would keep a scale test from being played: a limit, an agent, a key or a price."""
        self._within_limits(spec)
        for one in {(plan.agent, plan.spec.counterpart): plan for plan in plan_battles(spec)}.values():
            self._check(one.spec, dispatch, quoting)
        if spec.reviser:
            if self._directory.is_person(spec.reviser):
                raise BadArgument(f"agent {spec.reviser!r} is a person and cannot revise a prompt")
            reviser = self._directory.find(spec.reviser)
            if quoting is not Quoting.NONE:
                reviser.quote(reviser.profile.complete(ask("?")))

    async def start(
        self,
        spec: ScaleSpec,
        options: RunOptions | None = None,
        *,
        detach: bool = False,
        on_delta: Listener | None = None,
    ) -> RunHandle:
        """Start a scale test in this process; raises before anything is stored when an agent cannot be asked."""
        chosen = replace(options or self._runs.options(), media=spec.battle.media)
        self.check(spec, chosen.dispatch)
        return await self._runs.start(SCALE.workload, stored_scale(spec), chosen, detach=detach, on_delta=on_delta)

    async def submit(self, spec: ScaleSpec, options: RunOptions | None = None) -> RunHandle:
        """Store a scale test for the workers."""
        chosen = replace(options or self._runs.options(), media=spec.battle.media)
        self.check(spec, chosen.dispatch)
        return await self._runs.submit(SCALE.workload, stored_scale(spec), chosen)

    async def find(self, reference: str) -> Run:
        """Return a scale test by its reference; `last` is the newest."""
        return await self._runs.of_kind(SCALE, reference)

    async def status(self, reference: str) -> ScaleReport:
        """Return how a scale test stands, from the store."""
        return await summarize_scale(self._store, await self.find(reference))

    async def result(self, reference: str) -> ScaleReport:
        """Return what a scale test came to; raises Conflict before it has ended."""
        found = await self.status(reference)
        if found.run.state not in TERMINAL:
            raise Conflict(
                f"scale test {found.run.id} is {found.run.state}: its report is available when it has ended",
                suggestions=(f"muster runs watch {found.run.id}",),
            )
        return found

    async def conversations(self, reference: str) -> Mapping[int, BattleReport]:
        """Return the battles of a scale test that have begun, by their numbers."""
        found = await self.status(reference)
        return {one.plan.number: one.report for one in found.battles if one.report is not None}

    async def cancel(self, reference: str) -> Run:
        """Cancel a scale test with all its battles; what was said stays."""
        run = await self.find(reference)
        return await self._runs.cancel(run.id)

    async def report(self, run: Run) -> RunReport[ScaleReport]:
        """Return a scale test summed up, to be written in any format."""
        return await report_of_scale(self._store, run)

    def require(self, spec: Json, dispatch: Dispatch, *, here: bool) -> None:
        """Raise what would keep a stored spec from being played; elsewhere the keys of this process do not count."""
        self.check(known_scale(spec), dispatch, Quoting.FIRST if here else Quoting.NONE)
