"""All parts of an open Muster: what can be done with runs, agents, suites and every other kind of work."""

from dataclasses import replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Self

from muster.app.agent_kinds.directory import Agents
from muster.app.base.backend import Backend
from muster.app.base.stores import StoreFile
from muster.app.kinds import app_kind
from muster.app.parts.audit import UserActions
from muster.app.parts.budgets import ServerBudgets
from muster.app.questions.questions import Questions
from muster.app.runs.kind_part import KindPart
from muster.app.runs.options import RunOptions
from muster.app.runs.runs import Runs
from muster.domain.canonical import Json
from muster.domain.run import User
from muster.engine.base.clock import Clock
from muster.settings import Settings

if TYPE_CHECKING:
    from muster.app.battles.battles import Battles
    from muster.app.chains.chains import Chains
    from muster.app.councils.councils import Councils
    from muster.app.gateway.gateway import Gateway
    from muster.app.parts.library import Library
    from muster.app.pool.pool import Pool
    from muster.app.project.files import Project
    from muster.app.runs.batches import Batches
    from muster.app.suites.suites import Suites
    from muster.app.verify.code_repairs import CodeRepairs
    from muster.app.verify.verifications import Verifications


class MusterParts:
    """The parts of an open Muster; each is made when it is first used, since most commands need few of them."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.settings: Settings = backend.settings
        self.runs = Runs(backend, self._admit)
        self.agents = Agents(backend.directory)

    @cached_property
    def batches(self) -> "Batches":
        """Return what can be done with batches."""
        from muster.app.runs.batches import Batches

        return Batches(self._backend)

    @cached_property
    def pool(self) -> "Pool":
        """Return what can be done with the pool and its tasks."""
        from muster.app.pool.pool import Pool

        return Pool(self._backend, self.runs)

    @cached_property
    def project(self) -> "Project":
        """Return what can be done with the files of the project."""
        from muster.app.project.files import Project

        return Project(self.settings.home)

    @cached_property
    def suites(self) -> "Suites":
        """Return what can be done with suites."""
        from muster.app.suites.suites import Suites

        return Suites(self._backend, self.runs, self.agents)

    @cached_property
    def questions(self) -> Questions:
        """Return what decides about runs of single questions."""
        return Questions(self._backend, self.runs, self.agents)

    @cached_property
    def verify(self) -> "Verifications":
        """Return what can be done with verifications."""
        from muster.app.verify.verifications import Verifications

        return Verifications(self._backend, self.runs)

    @cached_property
    def councils(self) -> "Councils":
        """Return what can be done with councils."""
        from muster.app.councils.councils import Councils

        return Councils(self._backend, self.runs)

    @cached_property
    def battles(self) -> "Battles":
        """Return what can be done with battles and scale tests."""
        from muster.app.battles.battles import Battles

        return Battles(self._backend, self.runs)

    @cached_property
    def repairs(self) -> "CodeRepairs":
        """Return what can be done about the findings of verifications by agents that change files."""
        from muster.app.verify.code_repairs import CodeRepairs

        return CodeRepairs(self._backend, self.runs, self.pool, self.verify)

    @cached_property
    def chains(self) -> "Chains":
        """Return what can be done with chains."""
        from muster.app.chains.chains import Chains

        return Chains(self._backend, self.runs)

    @cached_property
    def library(self) -> "Library":
        """Return what requests to a server may name."""
        from muster.app.parts.library import Library

        return Library(self.settings)

    @cached_property
    def gateway(self) -> "Gateway":
        """Return what passes the requests of foreign programs on."""
        from muster.app.gateway.gateway import Gateway

        return Gateway(self._backend)

    @cached_property
    def store(self) -> StoreFile:
        """The store as a whole."""
        return StoreFile(self._backend)

    @cached_property
    def server_budgets(self) -> ServerBudgets:
        """Return the budgets of everything that is started through servers."""
        return ServerBudgets(self._backend)

    @cached_property
    def audit(self) -> UserActions:
        """Return what users of servers did."""
        return UserActions(self._backend)

    @property
    def clock(self) -> Clock:
        """The clock that all of it goes by."""
        return self._backend.clock

    def _admit(self, workload: str, spec: Json, options: RunOptions, here: bool) -> None:
        """Raise what would keep a run of ours from being done: an unknown agent, and if it is driven here, a key."""
        self._part_of(workload).require(spec, options.dispatch, here=here)

    def _part_of(self, workload: str) -> KindPart:
        """Return what decides about runs of a workload."""
        name = app_kind(workload).part
        part = attrgetter(name)(self) if name else KindPart()
        assert isinstance(part, KindPart)  # noqa: S101  # the list of kinds names it
        return part

    def acting_for(self, user: User) -> Self:
        """Return the same Muster as a user of a server may use it: with their runs, under their budget."""
        return type(self)(replace(self._backend, user=user))
