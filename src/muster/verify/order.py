"""What is said to start a verification: every field, once. Quick to load: commands read it for their help."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar

from muster.domain.dispatch import Fallback, Mode
from muster.domain.doors import EVERYWHERE, LOCAL, Door
from muster.domain.errors import ConflictingArguments
from muster.domain.order import FieldForm, Name, OrderField, ValueBounds
from muster.domain.run_order import DISPATCH, LimitedRunOrder, PlannedRun

FILES = "Files and agents"  # a heading
COMMIT = r"[A-Za-z0-9_][A-Za-z0-9_./@^~{}-]{0,199}"
MAX_VERIFIERS = 100
_REQUEST = frozenset({Door.REQUEST})
_ON_COMMAND_LINE = frozenset({Door.COMMAND})
Wave = Annotated[int, ValueBounds(min=1)]


class ChangedFiles(StrEnum):
    """Which files a request means, since it names none."""

    CHANGED = "changed"
    STAGED = "staged"
    PENDING = "pending"


@dataclass(frozen=True, kw_only=True)  # without slots: orders have several bases
class VerifierFields:
    """Who verifies: shared by an order and the choice that it becomes."""

    agents: Annotated[
        tuple[Name, ...],
        OrderField(
            help="Only this agent; repeatable.",
            option=("--agent", "-a"),
            metavar="A",
            shown="all",
            heading=FILES,
            max_length=MAX_VERIFIERS,
        ),
    ] = ()
    waves: Annotated[
        tuple[Wave, ...],
        OrderField(
            help="Only this wave; repeatable.",
            option=("--wave",),
            metavar="N",
            shown="all",
            heading=FILES,
            max_length=MAX_VERIFIERS,
        ),
    ] = ()
    keep_going: Annotated[
        bool, OrderField(help="Run later waves even if an earlier one did not pass.", heading=FILES)
    ] = False
    agents_file: Annotated[
        Path | None,
        OrderField(
            help="A file with verification agents.",
            form=FieldForm.PATH,
            option=("--agents",),
            metavar="FILE",
            shown="verify.yaml, else the built-in agents",
            heading=FILES,
            doors=LOCAL,
        ),
    ] = None
    model: Annotated[
        Name | None,
        OrderField(
            help="The model of agents that do not set one.",
            form=FieldForm.AGENT,
            metavar="M",
            shown="model in verify.yaml or muster.toml",
            heading=FILES,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class VerificationFields(VerifierFields):
    """Which files are verified, and by whom."""

    paths: Annotated[
        tuple[str, ...],
        OrderField(
            help="Files and folders. Write ./plan if a file has the name of a subcommand.",
            form=FieldForm.PATH,
            argument=True,
            metavar="PATH…",
            doors=LOCAL,
        ),
    ] = ()
    changed: Annotated[
        str | None,
        OrderField(
            help="The files that differ from a commit, and new files. REF is HEAD if it is left out.",
            metavar="[REF]",
            bare="",
            heading=FILES,
            doors=LOCAL,
        ),
    ] = None
    staged: Annotated[
        bool, OrderField(help="The staged files, in their staged version.", heading=FILES, doors=LOCAL)
    ] = False
    pending: Annotated[
        bool,
        OrderField(help="The files that other programs have listed in .muster/pending.", heading=FILES, doors=LOCAL),
    ] = False
    files: Annotated[
        ChangedFiles,
        OrderField(help="The files that have changed, are staged, or are marked as pending.", doors=_REQUEST),
    ] = ChangedFiles.CHANGED
    ref: Annotated[
        str | None, OrderField(help="The commit that changed files are compared with.", pattern=COMMIT, doors=_REQUEST)
    ] = None
    allow_empty: Annotated[
        bool,
        OrderField(
            help="Exit with 0 instead of 1 when there is nothing to verify.", heading=FILES, doors=_ON_COMMAND_LINE
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationOrder(VerificationFields, LimitedRunOrder):
    """A verification of the files of the project that have changed, are staged, or are marked as pending."""

    without: ClassVar = {"dispatch": EVERYWHERE}  # it can be left to the declarations of agents
    said: ClassVar = {
        "cache": {"help": "Use the provider's prompt cache.", "option_help": "Turn off the provider's prompt cache."}
    }

    batch: Annotated[
        bool,
        OrderField(
            help="Use the batch APIs, which cost less and take minutes to hours.",
            heading=DISPATCH,
            doors=_ON_COMMAND_LINE,
        ),
    ] = False
    live: Annotated[
        bool,
        OrderField(
            help="Send every call immediately, including those of agents with dispatch: batch.",
            heading=DISPATCH,
            doors=_ON_COMMAND_LINE,
        ),
    ] = False
    mode: Annotated[
        Mode | None,
        OrderField(
            help="How calls are sent; null leaves it to the declarations of agents.",
            alias="dispatch",
            shown="as the agents are declared",
            doors=_REQUEST,
        ),
    ] = None

    @property
    def sending(self) -> Mode | None:
        """How calls are sent; None leaves it to the declarations of agents."""
        return Mode.BATCH if self.batch else Mode.LIVE if self.live else self.mode


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationPlanOrder(PlannedRun, VerificationOrder):
    """A verification that is only planned."""

    without: ClassVar = dict.fromkeys(("name", "run_tags", "concurrency", "timeout_secs", "dispatch"), EVERYWHERE)


def require_consistent(order: VerificationOrder) -> None:
    """Raise ConflictingArguments for what contradicts that every call is live."""
    if order.live and order.batch:
        raise ConflictingArguments("batch", "live")
    if order.live and order.fallback is not Fallback.FAIL:
        raise ConflictingArguments("live", "fallback")
