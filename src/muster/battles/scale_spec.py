"""The spec of a scale test, and the battles that it plans: every agent and prompt plays the same goals. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from muster.battles.order import BattleGoal, Measurement, PromptVariant
from muster.battles.spec import BattleSpec, battle_flaws, lean, stored, without_data
from muster.domain.call import says_something
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.domain.flaw import FieldFlaw, FlawCode
from muster.domain.order import field_flaws
from muster.text import typed
from muster.text.declared_values import read_value

NO_SCALE_TEST = "not a valid spec of a scale test"
MAX_RUNS, MAX_CONCURRENT = 10, 3  # of one scale test, unless the operator raises them
RUNS_LIMIT, CONCURRENCY_LIMIT = "battles.runs", "battles.concurrency"  # the names of the operator's limits


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleSpec(Measurement):
    """Many battles that measure one or several agents or prompts, as it is stored: every number is chosen.

    Without agents, prompts or goals it is that of the battle; without a reviser nobody proposes a better prompt.
    """

    battle: BattleSpec  # what all battles share

    @property
    def at_once(self) -> int:
        """Return how many battles are played at the same time; one that waits in a batch leaves its place."""
        return self.concurrency or MAX_CONCURRENT

    @property
    def subjects(self) -> tuple[tuple[str, PromptVariant], ...]:
        """Return what is measured: every agent with every prompt."""
        prompts = self.prompts or (PromptVariant(name="", text=self.battle.system_prompt),)
        return tuple((agent, prompt) for prompt in prompts for agent in self.agents or (self.battle.agent,))

    @property
    def wanted(self) -> tuple[BattleGoal, ...]:
        """Return the goals that are played."""
        own = BattleGoal(goal=self.battle.goal, persona=self.battle.persona, user_message=self.battle.user_message)
        return self.goals or (own,)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedBattle:
    """One battle of a scale test."""

    number: int  # from one
    key: str
    agent: str
    prompt: str  # the name of its variant
    goal: int  # its place among the goals, from one
    spec: BattleSpec


def plan_battles(spec: ScaleSpec) -> tuple[PlannedBattle, ...]:
    """Return the battles: subjects take turns, and each plays the goals in the same order, again and again."""
    return tuple(_planned(spec, number, f"battle/{number:03}") for number in range(1, spec.runs + 1))


def plan_revised(spec: ScaleSpec, prompt: str) -> tuple[PlannedBattle, ...]:
    """Return the battles of the first subject once more, with another prompt; numbers are those of their pairs."""
    again = (one for one in plan_battles(spec) if (one.number - 1) % len(spec.subjects) == 0)
    return tuple(
        replace(
            one,
            key=f"revised/{one.number:03}",
            prompt="revised",
            spec=replace(one.spec, system_prompt=prompt),
        )
        for one in again
    )


def _planned(spec: ScaleSpec, number: int, key: str) -> PlannedBattle:
    subjects, goals = spec.subjects, spec.wanted
    repeat, place = divmod(number - 1, len(subjects))
    agent, prompt = subjects[place]
    goal = goals[repeat % len(goals)]
    seed = spec.battle.seed
    return PlannedBattle(
        number=number,
        key=key,
        agent=agent,
        prompt=prompt.name,
        goal=repeat % len(goals) + 1,
        spec=replace(
            spec.battle,
            agent=agent,
            system_prompt=prompt.text,
            goal=goal.goal,
            persona=goal.persona or spec.battle.persona,
            user_message=goal.user_message or spec.battle.user_message,
            # Another one for each repeat: with the same one all would be the same battle.
            seed=None if seed is None else seed + 1000 * repeat,
        ),
    )


def stored_scale(spec: ScaleSpec) -> dict[str, Json]:
    """Return a spec as it is stored."""
    found = lean(replace(spec, battle=without_data(spec.battle)))
    found["battle"] = stored(spec.battle)
    for name in ("prompts", "goals"):
        if getattr(spec, name):
            found[name] = [lean(one) for one in getattr(spec, name)]
    return found


def read_scale(spec: Json) -> ScaleSpec:
    """Read a stored or given spec; raises BadArgument with everything that is wrong with it."""
    return read_value(spec, ScaleSpec, about=NO_SCALE_TEST, rules=scale_flaws)


def known_scale(spec: Json) -> ScaleSpec:
    """Read a spec that was checked when it was stored, without checking it again, which may take a while."""
    try:
        return typed.convert(spec, ScaleSpec)
    except typed.ValidationError as error:
        raise BadArgument(f"{NO_SCALE_TEST}: {error}") from error


def scale_flaws(spec: ScaleSpec) -> Iterator[FieldFlaw]:
    """Yield what is wrong with a scale test; the operator's limits are checked where they are known."""
    numbers = list(field_flaws(spec))
    if not spec.runs:
        numbers.append(FieldFlaw(path="runs", message="must be at least 1", code=FlawCode.OUT_OF_BOUNDS, given="0"))
    yield from numbers
    yield from _gate_flaws(spec)
    names = [one.name for one in spec.prompts]
    if len(set(names)) < len(names):
        yield FieldFlaw(path="prompts", message="two prompts have the same name", by_itself=True)
    for place, one in enumerate(spec.goals):
        if not says_something(one.goal):
            yield FieldFlaw(path=f"goals[{place}]", message="is empty", code=FlawCode.OUT_OF_BOUNDS)
    if not numbers:
        once = len(spec.subjects) * len(spec.wanted)  # later battles repeat these
        for planned in plan_battles(replace(spec, runs=min(spec.runs, once))):
            yield from battle_flaws(planned.spec)


def _gate_flaws(spec: ScaleSpec) -> Iterator[FieldFlaw]:
    if spec.min_goal_rate is not None and not spec.battle.decides:
        message = "needs a judge or validators, else no goal is ever reached"
        yield FieldFlaw(path="min_goal_rate", message=message)
    if spec.try_revised and not spec.reviser:
        yield FieldFlaw(path="try_revised", message="needs a reviser, who proposes the prompt")


def require_limits(spec: ScaleSpec, limits: Mapping[str, int]) -> None:
    """Raise BadArgument for each limit of the operator that a scale test exceeds."""
    flaws = []
    for name, given, key, usual in (
        ("runs", spec.runs, RUNS_LIMIT, MAX_RUNS),
        ("concurrency", spec.at_once, CONCURRENCY_LIMIT, MAX_CONCURRENT),
    ):
        most = limits.get(key, usual)
        if given > most:
            message = f"must be at most {most}"
            flaws.append(FieldFlaw(path=name, message=message, code=FlawCode.OUT_OF_BOUNDS, given=str(given)))
    if flaws:
        raise BadArgument.of(flaws, suggestions=("the limit is set under [battles] in muster.toml",))
