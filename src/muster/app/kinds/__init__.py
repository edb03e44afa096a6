"""All kinds of work: one list, through which every door goes. A further feature is a folder and one line of it.

A feature says in its `kind.py` what it is; here stands what the application adds: which part of `Muster` decides about
its runs, and how the page shows them. Workloads of the user's own are kinds too, made from their names.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from muster.app.kinds.doors import KindDoors
from muster.app.kinds.gateway import GATEWAY
from muster.app.kinds.question import QUESTION
from muster.battles.kind import BATTLE, SCALE
from muster.councils.kind import COUNCIL
from muster.domain.doors import LOCAL, Door
from muster.domain.kind import WorkKind
from muster.pool.chains.kind import CHAIN
from muster.pool.kind import FAN_OUT, TASK
from muster.suites.kind import GENERATION, SUITE
from muster.verify.kind import REPAIR, VERIFICATION

if TYPE_CHECKING:
    from muster.domain.run import Run

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
    "AppKind",
    "KindDoors",
    "PageKind",
    "app_kind",
    "called",
    "kind_of",
    "loaded",
    "made_at",
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
    is_compared: bool = False  # its runs are compared with each other, and have trends
    is_listed: bool = True  # among the kinds by which runs can be filtered
    button: str = ""  # of the form that starts one; by default "Start the" and its name
    place: str = "runs"  # where the page shows what was started


@dataclass(frozen=True, slots=True, kw_only=True)
class AppKind:
    """A kind of work with what the application adds to it."""

    kind: WorkKind
    part: str = ""  # the attribute of `Muster` that decides about its runs: a `KindPart`
    doors: KindDoors = field(default_factory=KindDoors)
    page: PageKind = field(default_factory=PageKind)

    def made_at(self, door: Door) -> bool:
        """Return whether what starts it at a door is made from its order."""
        own = self.doors.start if door in LOCAL else self.doors.submit
        return bool(self.kind.order) and door not in self.doors.own and bool(self.kind.spec_of or own)

    @property
    def order(self) -> Any:
        """The class whose fields say what is started, loaded when it is first asked for."""
        return loaded(self.kind.order)

    @property
    def tool_order(self) -> Any:
        """What models say to start one."""
        return loaded(self.doors.tool_order) if self.doors.tool_order else self.order

    @property
    def action(self) -> str:
        """What the audit log calls a start."""
        return self.doors.action or f"start {self.kind.word}"

    @property
    def path(self) -> str:
        """The path of the request that starts one."""
        return self.doors.path or f"/api/{self.place}"

    @property
    def place(self) -> str:
        """What people call several, as it stands in paths."""
        return self.kind.plural.replace(" ", "-")

    @property
    def schema(self) -> str:
        """The name of what is sent to start one, as the name of a class."""
        return self.doors.schema or self.kind.class_name


KINDS: tuple[AppKind, ...] = (
    AppKind(
        kind=TASK,
        part="pool",
        doors=KindDoors(
            submit="muster.app.serving.tasks:submit_task",
            action="submit task",
            answer="muster.app.serving.tasks:submitted_task",
            has_list=True,
            tool="submit_task",
            told="Give a piece of work to an agent of the pool (a crew of coding or CLI agents in slots). Returns the "
            "id of the task at once; the work continues when you disconnect. With review=true it stops when done and "
            "waits for review_task; rejected work is done again with your feedback.",
            own={Door.COMMAND: "it is driven here while nobody drives the pool, and waits for reviews"},
        ),
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
        doors=KindDoors(
            outline="muster.app.views.outlines:outline_of_question",
            submit="muster.app.serving.questions:submit_ask",
            action="start ask",
            schema="Ask",
            path="/api/ask",
            has_list=True,
            tool="ask",
            told="Ask one agent one question, without a slot or tools: a single durable model call. Returns an id; "
            "wait for it to get the reply.",
            own={Door.COMMAND: "it prints nothing but the answer, while that is written"},
        ),
        page=PageKind(tab="answer", label="Answer", view="question.AnswerTab", shows_questions=True, button="Ask"),
    ),
    AppKind(
        kind=CHAIN,
        part="chains",
        doors=KindDoors(
            outline="muster.app.views.outlines:outline_of_chain",
            ending="chains.order:CHAINS",
            submit="muster.app.serving.chains:submit_chain",
            has_list=True,
            tool="run_chain",
            told="Run a chain of the operator's library: steps of prompts and commands, in order, each with the output "
            "of those before. overview lists the chains.",
            own={Door.COMMAND: "one command runs several chains side by side"},
        ),
        page=PageKind(tab="steps", label="Steps", view="chain.ChainTab"),
    ),
    AppKind(
        kind=SUITE,
        part="suites",
        doors=KindDoors(
            ending="suites.order:SUITES",
            submit="muster.app.serving.suites:submit_suite",
            path="/api/suites/start",
            has_list=True,
            tool="run_suite",
            told="Run test suites of the operator's library against agents: cases with checks and judges, pass rates "
            "with intervals. overview lists the suites.",
            newer=("timeout_secs",),
            own={Door.COMMAND: "it reads the answers that it takes from runs and files before it asks anybody"},
        ),
        page=PageKind(
            tab="results", label="Results", view="suite.SuiteTab", actions="picker.SuiteLinks", is_compared=True
        ),
    ),
    AppKind(
        kind=COUNCIL,
        part="councils",
        doors=KindDoors(
            outline="muster.app.views.outlines:outline_of_council",
            ending="councils.order:COUNCILS",
            submit="muster.app.serving.councils:submit_council",
            start="muster.app.orders:start_council",
            hint="send its members a text with: muster council inject {run} TEXT",
            has_list=True,
            tool="start_council",
            told="Let several agents argue about a question: each proposes, all score each other's proposals, until "
            "they are convinced. Returns an id; the result has the winning answer and the dissent. A member can be a "
            "person, whose questions you ask the user.",
            newer=("quorum",),
        ),
        page=PageKind(
            tab="council", label="Council", view="council.CouncilTab", shows_questions=True, button="Ask the council"
        ),
    ),
    AppKind(
        kind=BATTLE,
        part="battles",
        doors=KindDoors(
            outline="muster.app.views.outlines:outline_of_battle",
            ending="battles.order:BATTLES",
            submit="muster.app.serving.battles:submit_battle",
            start="muster.app.orders:start_battle",
            path="/api/battles/start",
            camel=True,
            answer="muster.app.serving.battles:started_battle",
            has_list=True,
            told="Test an agent in a conversation with a counterpart who wants a goal; judges say when it is reached. "
            "With runs > 1 it is a scale test: many such conversations, with goal rate, cost and a revised prompt.",
            tool_order="muster.battles.order:BattlesOrder",
        ),
        page=PageKind(tab="conversation", label="Conversation", view="battle.BattleTab", shows_questions=True),
    ),
    AppKind(
        kind=SCALE,
        part="battles.scales",
        doors=KindDoors(
            outline="muster.app.views.outlines:outline_of_scale",
            ending="battles.order:SCALES",
            submit="muster.app.serving.battles:submit_battle",
            start="muster.app.orders:start_scale",
            heading="Battle",
            schema="Scale",
            path="/api/scale/start",
            camel=True,
            answer="muster.app.serving.battles:started_scale",
            has_list=True,
            own={Door.TOOL: "the tool of a battle starts it too"},
        ),
        page=PageKind(tab="battles", label="Battles", view="scale.ScaleTab", calls="Calls besides its battles"),
    ),
    AppKind(
        kind=VERIFICATION,
        part="verify",
        doors=KindDoors(
            ending="verify.order:VERIFICATIONS",
            submit="muster.app.serving.verifications:submit_verification",
            schema="Verify",
            path="/api/verify",
            has_list=True,
            own={
                Door.COMMAND: "it can find nothing to verify, and repairs what was found",
                Door.TOOL: "the project is verified by its operator, its hook and its CI",
            },
        ),
        page=PageKind(tab="findings", label="Findings", view="findings.FindingsTab", button="Verify the files"),
    ),
    AppKind(kind=REPAIR, page=PageKind(is_listed=False)),
    AppKind(
        kind=GENERATION,
        part="suites.generations",
        doors=KindDoors(own={Door.COMMAND: "what was written is checked, shown and stored as files of the suite"}),
        page=PageKind(is_listed=False),
    ),
    AppKind(kind=GATEWAY, page=PageKind(calls="Requests answered")),
    AppKind(
        kind=FAN_OUT,
        doors=KindDoors(
            own={
                Door.COMMAND: "it is as many runs as its file has prompts, whose results are shown together",
                Door.TOOL: "it is as many runs as it has prompts, each with a key of its own",
                Door.REQUEST: "a request starts one run, so that it can be sent again; each task is one",
                Door.JOB: "a job is one run",
            }
        ),
        page=PageKind(is_listed=False),
    ),
)

_BY_WORKLOAD: Mapping[str, AppKind] = {known.kind.workload: known for known in KINDS if known.kind.workload}
BUILT_IN = tuple(known.kind for known in _BY_WORKLOAD.values())  # kinds with runs of their own
REPORTED = tuple(kind.workload for kind in BUILT_IN if kind.report is not None)  # workloads whose runs have reports


def made_at(door: Door) -> tuple[AppKind, ...]:
    """Return the kinds whose start at a door is made from their orders."""
    return tuple(known for known in KINDS if known.made_at(door))


IN_SLOTS = frozenset(kind.workload for kind in BUILT_IN if kind.in_slot)


@cache
def app_kind(workload: str) -> AppKind:
    """Return the kind of a workload; one of the user's own is called by its name."""
    return _BY_WORKLOAD.get(workload) or AppKind(kind=WorkKind(workload=workload, word=workload))


def kind_of(run: "Run") -> WorkKind:
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
