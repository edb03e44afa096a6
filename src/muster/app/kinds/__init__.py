"""All kinds of work: one list, through which every door goes. A further feature is a folder and one line of it.

A feature says in its `kind.py` what it is; here stands what the application adds: which part of `Muster` decides about
its runs, and how the page shows them. Workloads of the user's own are kinds too, made from their names.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from muster.app.kinds.question import QUESTION
from muster.battles.kind import BATTLE, SCALE
from muster.councils.kind import COUNCIL
from muster.domain.kind import WorkKind
from muster.domain.run import Run
from muster.pool.kind import CHAIN, FAN_OUT, TASK
from muster.suites.kind import GENERATION, SUITE
from muster.verify.kind import REPAIR, VERIFICATION

__all__ = [
    "BATTLE",
    "BUILT_IN",
    "CHAIN",
    "COUNCIL",
    "FAN_OUT",
    "GENERATION",
    "IN_SLOTS",
    "KINDS",
    "QUESTION",
    "REPAIR",
    "REPORTED",
    "SCALE",
    "SUITE",
    "TASK",
    "VERIFICATION",
    "WITH_MADE_DOORS",
    "AppKind",
    "PageKind",
    "app_kind",
    "called",
    "kind_of",
    "loaded",
    "reported_words",
    "word_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageKind:
    """How the page shows runs of a kind; without a tab of its own, as any run: with its report or its result."""

    tab: str = ""  # in the address of a run
    label: str = ""  # of the tab
    view: str = ""  # "battle.BattleTab": a file of the page, and the component in it
    actions: str = ""  # a component with further links and buttons at the head of a run
    shows_questions: bool = False  # the tab shows what people are asked where it belongs
    calls: str = "Calls answered"
    is_listed: bool = True  # among the kinds by which runs can be filtered
    button: str = ""  # of the form that starts one; by default "Start the" and its name
    place: str = "runs"  # where the page shows what was started


@dataclass(frozen=True, slots=True, kw_only=True)
class AppKind:
    """A kind of work with what the application adds to it."""

    kind: WorkKind
    part: str = ""  # the attribute of `Muster` that decides about its runs: a `KindPart`
    page: PageKind = field(default_factory=PageKind)


KINDS: tuple[AppKind, ...] = (
    AppKind(
        kind=TASK,
        part="pool",
        page=PageKind(
            tab="work",
            label="Work",
            view="tasks.TaskTab",
            actions="tasks.TaskLink",
            button="Submit the task",
            place="tasks",
        ),
    ),
    AppKind(
        kind=QUESTION,
        part="questions",
        page=PageKind(tab="answer", label="Answer", view="question.AnswerTab", shows_questions=True, button="Ask"),
    ),
    AppKind(kind=CHAIN, part="chains", page=PageKind(tab="steps", label="Steps", view="chain.ChainTab")),
    AppKind(
        kind=SUITE,
        part="suites",
        page=PageKind(tab="results", label="Results", view="suite.SuiteTab", actions="picker.SuiteLinks"),
    ),
    AppKind(
        kind=COUNCIL,
        part="councils",
        page=PageKind(
            tab="council", label="Council", view="council.CouncilTab", shows_questions=True, button="Ask the council"
        ),
    ),
    AppKind(
        kind=BATTLE,
        part="battles",
        page=PageKind(tab="conversation", label="Conversation", view="battle.BattleTab", shows_questions=True),
    ),
    AppKind(
        kind=SCALE,
        part="battles.scales",
        page=PageKind(tab="battles", label="Battles", view="scale.ScaleTab", calls="Calls besides its battles"),
    ),
    AppKind(
        kind=VERIFICATION,
        part="verify",
        page=PageKind(tab="findings", label="Findings", view="findings.FindingsTab", button="Verify the files"),
    ),
    AppKind(kind=REPAIR, page=PageKind(is_listed=False)),
    AppKind(kind=GENERATION, part="suites.generations", page=PageKind(is_listed=False)),
    AppKind(kind=FAN_OUT, page=PageKind(is_listed=False)),
)

_BY_WORKLOAD: Mapping[str, AppKind] = {known.kind.workload: known for known in KINDS if known.kind.workload}
BUILT_IN = tuple(known.kind for known in _BY_WORKLOAD.values())  # kinds with runs of their own
REPORTED = tuple(kind.workload for kind in BUILT_IN if kind.report is not None)  # workloads whose runs have reports
WITH_MADE_DOORS = tuple(known for known in KINDS if known.kind.makes_doors)
IN_SLOTS = frozenset(kind.workload for kind in BUILT_IN if kind.in_slot)


@cache
def app_kind(workload: str) -> AppKind:
    """Return the kind of a workload; one of the user's own is called by its name."""
    return _BY_WORKLOAD.get(workload) or AppKind(kind=WorkKind(workload=workload, word=workload))


def kind_of(run: Run) -> WorkKind:
    """Return the kind of a run."""
    return app_kind(run.workload).kind


def word_of(workload: str) -> str:
    """Return what people call a workload."""
    return app_kind(workload).kind.word


def called(search: str) -> tuple[str, ...]:
    """Return the workloads whose name for people has the words of a search in it, as one or as several of them."""
    words = search.strip().lower()
    return tuple(kind.workload for kind in BUILT_IN if words and (words in kind.word or words in kind.plural))


def reported_words() -> str:
    """Return what people call the kinds whose runs have reports, in a sentence."""
    *words, last = (kind.plural for kind in BUILT_IN if kind.report is not None)
    return f"{', '.join(words)} and {last}"


@cache
def loaded(place: str) -> Any:
    """Return what a kind names by "module:name": it is loaded when it is first needed."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
