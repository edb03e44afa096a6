"""What a chain would do and cost, found out before anything is stored or spent."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from muster.app.agent_kinds.directory import AgentDirectory
from muster.app.base.costs import NOTHING, Load, Quoter, Quoting
from muster.domain.agent import DEFAULT_MAX_TOKENS
from muster.domain.call import Message, Request, Role, ask
from muster.domain.canonical import Json
from muster.domain.dispatch import Dispatch, Mode
from muster.domain.errors import BadConfiguration
from muster.domain.script import BYTES_PER_TOKEN
from muster.pool.chains.chain import MAX_ITEMS, Chain, ChainSpec, ChainStep
from muster.pool.chains.rules import complete_input
from muster.pool.chains.scope import Scope
from muster.pool.chains.templates import parse_template

COMMAND_CHARACTERS = 10_000  # for which the output of a command is counted


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """One step as it would be done."""

    step: ChainStep
    load: Load
    mode: Mode | None  # None: a command, which no agent runs


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPlan:
    """A chain as it would be run."""

    chain: Chain
    rows: int
    steps: tuple[PlannedStep, ...]

    @property
    def all(self) -> Load:
        """Return everything together."""
        total = NOTHING
        for step in self.steps:
            total = total.plus(step.load)
        return total


def _mode(step: ChainStep, dispatch: Dispatch) -> Mode:
    return Mode(step.dispatch) if step.dispatch else dispatch.mode


class ChainPlanner:
    """Counts the calls of steps, and what they cost with the longest outputs before them."""

    def __init__(
        self, directory: AgentDirectory, spec: ChainSpec, dispatch: Dispatch, quoting: Quoting, *, path: str | None
    ) -> None:
        self._directory, self._spec, self._dispatch = directory, spec, dispatch
        self._quoter = Quoter(directory, dispatch, quoting)
        self._path = path  # where programs are looked for
        self._rows = [{**spec.input, **row} for row in spec.rows] or [dict(spec.input)]

    def survey(self) -> ChainPlan:
        """Look at every step; raises what would keep the chain from being run."""
        steps = tuple(self._planned(step) for step in self._spec.chain.steps)
        return ChainPlan(chain=self._spec.chain, rows=len(self._spec.rows), steps=steps)

    def _planned(self, step: ChainStep) -> PlannedStep:
        for command in filter(None, (step.command, step.check)):
            self._require_program(step, command[0])
        load = self._load(step)
        if step.is_command:
            return PlannedStep(step=step, load=load, mode=None)
        wanted = _mode(step, self._dispatch)
        if step.dispatch and wanted is not self._directory.mode_of(step.agent, wanted):
            way = "in batches" if wanted is Mode.BATCH else "in the tier flex"
            raise BadConfiguration(
                f"step {step.name!r}: agent {step.agent!r} cannot be asked {way}",
                suggestions=("write dispatch: live, or leave it out",),
            )
        return PlannedStep(step=step, load=load, mode=wanted)

    def _require_program(self, step: ChainStep, program: str) -> None:
        """Refuse a command whose program is not there: it would be missed after the steps before it were paid."""
        if "/" in program and not Path(program).is_absolute():
            return  # a step before may make it
        if shutil.which(program, path=self._path) is None:
            raise BadConfiguration(
                f"step {step.name!r}: program {program!r} not found",
                suggestions=("install it, or use its full path",),
            )

    def _load(self, step: ChainStep) -> Load:
        """Return what one step asks of its agent, in all rows."""
        if not step.asks_agent:
            return NOTHING
        tries = 1 if step.is_command else step.most_tries
        items = MAX_ITEMS if step.for_each else 1
        sure = 0 if step.when or step.is_command else 1
        calls = len(self._rows) * sure
        if not self._quoter.wants(step.agent):
            return Load(calls=calls, most_calls=len(self._rows) * tries * items)
        mode, total = _mode(step, self._dispatch), NOTHING
        for given in self._rows:
            least, most = self._request(step, given, 0), self._request(step, given, self._longest())
            load = self._quoter.load(step.agent, [least] * sure, [most] * tries, sure, mode)
            total = total.plus(
                replace(
                    load,
                    most_calls=load.most_calls * items,
                    tokens=load.tokens * items,
                    most=load.most * items,
                    live=None if load.live is None else load.live * items,
                )
            )
        return total

    def _request(self, step: ChainStep, given: Mapping[str, Json], longest: int) -> Request:
        """Return the request of a step, in which what other steps give has a length."""
        scope = Scope(known=self._spec.known, input=complete_input(self._spec.chain, given))

        def value_of(name: str) -> Json:
            return scope.value_of(name) if name.startswith("input.") else "x" * longest

        text = parse_template(step.recovery if step.is_command else step.prompt).expand(value_of)
        system = parse_template(step.system).expand(value_of)
        message = Message(role=Role.USER, text=text)
        return Request(messages=(message,), system=system, max_tokens=step.max_tokens, settings=step.settings)

    def _longest(self) -> int:
        """Return how many characters the longest output of any step can have."""
        tokens = max(self._max_tokens(one) for one in self._spec.chain.steps)
        commands = any(one.is_command for one in self._spec.chain.steps)
        return max(tokens * BYTES_PER_TOKEN, COMMAND_CHARACTERS * commands)

    def _max_tokens(self, step: ChainStep) -> int:
        if not step.asks_agent:
            return DEFAULT_MAX_TOKENS
        return self._directory.find(step.agent).profile.limit(replace(ask(""), max_tokens=step.max_tokens))
