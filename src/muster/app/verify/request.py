"""What a verification is asked for, and what it came to: with its repair, if one was made."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from muster.app.runs.handle import RunHandle
from muster.app.runs.options import RunOptions
from muster.app.runs.reports import RunReport
from muster.app.verify.plan import VerifyPlan
from muster.app.verify.repair import Fixed
from muster.domain.dispatch import Dispatch, Mode, chosen_dispatch
from muster.domain.errors import BadArgument
from muster.domain.money import Microdollars
from muster.domain.order import shared_fields
from muster.domain.run import Run, RunState
from muster.git.branch_changes import CommittedTree
from muster.verify.declaration.verification import LeftOut, RepairTerms, Verification
from muster.verify.findings.assessment import has_failing_secret
from muster.verify.order import VerificationOrder, VerifierFields
from muster.verify.reports.summary import VerifyReport
from muster.verify.sources.files import FileSelection


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyChoice(VerifierFields):
    """Who is to verify, and how."""

    live: bool = False
    cache: bool = True
    repair: RepairTerms | None = None  # who repairs what is found; None: nobody


EVERY_AGENT = VerifyChoice()  # of verify.yaml, or the shipped ones


def ordered_choice(order: VerificationOrder) -> VerifyChoice:
    """Return who is to verify as it was ordered; who is named twice is asked once."""
    who = {"agents": tuple(dict.fromkeys(order.agents)), "waves": tuple(sorted(set(order.waves)))}
    return VerifyChoice(**{**shared_fields(order, VerifyChoice), **who, "live": order.sending is Mode.LIVE})


def ordered_dispatch(order: VerificationOrder) -> Dispatch:
    """Return how calls are sent; the prompt cache of a provider is used by live calls too."""
    own = Dispatch() if order.sending is None else chosen_dispatch(order.sending, order.fallback)
    return replace(own, fallback=order.fallback, cache=order.cache)


@dataclass(slots=True, kw_only=True)
class Prepared:
    """A verification that is ready to be started."""

    spec: Verification
    agents_file: str  # which file says who verifies
    left_out: tuple[LeftOut, ...] = ()
    started: bool = False  # by a run, which needs what was staged for it

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to verify: no file for any agent, and no secret in those left out."""
        return not self.spec.files and not has_failing_secret(self.spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """What is to be verified, by whom, and how the run is done."""

    folder: str | Path
    selection: FileSelection
    choice: VerifyChoice = EVERY_AGENT
    options: RunOptions
    detach: bool = False
    queued: bool = False  # left to the workers
    batch_option: str = ""  # the name of an option that has no use without batches

    def require_repairable(self) -> None:
        """Raise BadArgument when files could not be changed after its verification."""
        other = "--staged" if self.selection.staged else "--detach" if self.detach else ""
        why = "of staged files" if self.selection.staged else "that is detached"
        if other:
            raise BadArgument(
                f"files cannot be changed after a verification {why}",
                suggestions=(f"leave one of them out: --fix or {other}",),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedVerification:
    """What was prepared for a request, and its run; without one there was nothing to verify."""

    prepared: Prepared
    plan: VerifyPlan | None = None
    handle: RunHandle | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWork:
    """What an agent did to repair what was found."""

    agent: str
    task: str  # its id
    cost: Microdollars
    branch: str | None = None
    summary: str = ""  # of what the branch holds
    diff: str = ""  # a patch of bounded size, without secrets
    elsewhere: str = ""  # the patch of other files than those with findings
    apart: str = ""  # the patch of what decides about a verification, which was restored
    repository: Mapping[str, Any] = field(default_factory=dict)  # what changed in the user's repository meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOfRepair:
    """The changes to files with findings alone, where there are others: with these the findings must be gone."""

    files: tuple[str, ...]
    others: tuple[str, ...]  # files that were changed besides
    tree: CommittedTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """The changes that were made after a verification, and the verification of these changes."""

    before: Run
    fixed: Fixed
    again: StartedVerification | None = None
    obstacle: str = ""  # why changes are not verified, or not accepted whatever their verification says
    work: AgentWork | None = None  # of an agent that made the changes, on a branch of its own
    part: PartOfRepair | None = None  # that decides whether the findings are gone, and is not verified yet


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcludedVerification:
    """A verification that was summed up, and the files that it wrote by itself."""

    report: RunReport[VerifyReport]
    left: "LeftBehind"
    repair: Repair | None = None  # after which it was made
    unverified: tuple[str, ...] = ()  # files changed by the repair that it did not see

    @property
    def ok(self) -> bool:
        """Return whether it is a success; a changed file that was not verified is none, nor is a refused repair."""
        return self.report.ok and not self.unverified and not self._refused

    @property
    def verdict(self) -> str:
        """Return its result in a sentence."""
        if self.unverified:
            return f"Changed and not verified any more: {', '.join(self.unverified)}."
        verdict = self.report.summary.verdict
        return f"The repair is not accepted: {self._refused}." if self._refused and self.report.ok else verdict

    @property
    def needs_part(self) -> bool:
        """Return whether it passed, and the part of the repair that decides is not verified yet."""
        if self.repair is None or self.repair.part is None or self.repair.obstacle:
            return False
        return self.report.ok and not self.unverified

    @property
    def _refused(self) -> str:
        if self.repair is None:
            return ""
        open_part = "" if self.repair.part is None else "its changes to files with findings are not verified alone yet"
        return self.repair.obstacle or open_part

    @property
    def can_be_repaired(self) -> bool:
        """Return whether its run completed and did not pass."""
        return self.report.run.state is RunState.COMPLETED and not self.ok


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftBehind:
    """The files that a verification wrote by itself: a report for each wave, and the log of the day."""

    reports: tuple[Path, ...]
    log: Path
