"""The options that choose what is verified and by whom, shared by `verify` and `verify plan`; quick to load."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from muster.cli.line import Argument, Bundle, Option
from muster.cli.line.parameters import files
from muster.cli.options import (
    DispatchOptions,
    FallbackOption,
    PatienceOptions,
    PlanBudgetOption,
    PlanUnpricedOption,
    RunTerms,
    terms_with,
)
from muster.domain.errors import BadArgument
from muster.domain.run import Dispatch, Fallback, Mode

FORMATS = "terminal, markdown, json, sarif or junit"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyArguments:
    """What was said on the command line about files and agents."""

    paths: tuple[str, ...] = ()
    changed: str | None = None  # the commit that was named with it; empty: none
    staged: bool = False
    pending: bool = False
    agents: tuple[str, ...] = ()
    waves: tuple[int, ...] = ()
    keep_going: bool = False
    allow_empty: bool = False
    agents_file: Path | None = None
    model: str | None = None

    def commit(self) -> str | None:
        """Return the commit to compare with; with --changed a word is one, unless it is a file."""
        words = [*([self.changed] if self.changed else []), *self.paths]
        if files := [path for path in self.paths if Path(path).exists()]:
            raise BadArgument(
                f"{files[0]} and --changed cannot be used together",
                suggestions=("muster verify PATH…", "or muster verify --changed [COMMIT]"),
            )
        if len(words) > 1:
            raise BadArgument(
                "with --changed there is at most one word, the commit to compare with",
                suggestions=("muster verify --changed main", "or name files and leave --changed out"),
            )
        return words[0] if words else None


def asked_of(
    paths: Annotated[
        list[str] | None,
        Argument(
            metavar="PATH…",
            complete=files,
            help="Files and folders. Write ./plan if a file has the name of a subcommand.",
        ),
    ] = None,
    changed: Annotated[
        str | None,
        Option(
            "--changed",
            metavar="[REF]",
            bare="",
            help="The files that differ from a commit, and new files. REF is HEAD if it is left out.",
        ),
    ] = None,
    staged: Annotated[bool, Option("--staged", help="The staged files, in their staged version.")] = False,
    pending: Annotated[
        bool, Option("--pending", help="The files that other programs have listed in .muster/pending.")
    ] = False,
    agent: Annotated[
        list[str] | None, Option("--agent", "-a", metavar="A", shown="all", help="Only this agent; repeatable.")
    ] = None,
    wave: Annotated[
        list[int] | None, Option("--wave", metavar="N", min=1, shown="all", help="Only this wave; repeatable.")
    ] = None,
    keep_going: Annotated[
        bool, Option("--keep-going", help="Run later waves even if an earlier one did not pass.")
    ] = False,
    allow_empty: Annotated[
        bool, Option("--allow-empty", help="Exit with 0 instead of 1 when there is nothing to verify.")
    ] = False,
    agents: Annotated[
        Path | None,
        Option(
            "--agents",
            metavar="FILE",
            shown="verify.yaml, else the built-in agents",
            help="A file with verification agents.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        Option(
            "--model",
            metavar="M",
            complete="agent_names",
            shown="model in verify.yaml or muster.toml",
            help="The model of agents that do not set one.",
        ),
    ] = None,
) -> VerifyArguments:
    """Collect what was given."""
    return VerifyArguments(
        paths=tuple(paths or ()),
        changed=changed,
        staged=staged,
        pending=pending,
        agents=tuple(dict.fromkeys(agent or ())),
        waves=tuple(sorted(set(wave or ()))),
        keep_going=keep_going,
        allow_empty=allow_empty,
        agents_file=agents,
        model=model,
    )


AskedOptions = Annotated[VerifyArguments, Bundle(asked_of, "Files and agents")]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyDispatchOptions:
    """How the calls of a verification are sent."""

    sending: DispatchOptions
    live: bool = False  # whatever the agents' own declarations say
    cache: bool = True


def verify_sending_of(
    batch: Annotated[
        bool, Option("--batch", help="Use the batch APIs, which cost less and take minutes to hours.")
    ] = False,
    detach: Annotated[
        bool, Option("--detach", help="Submit the batches and exit; continue with `muster verify resume`.")
    ] = False,
    live: Annotated[
        bool, Option("--live", help="Send every call immediately, including those of agents with dispatch: batch.")
    ] = False,
    fallback: FallbackOption = "fail",
    no_cache: Annotated[bool, Option("--no-cache", help="Turn off the provider's prompt cache.")] = False,
) -> VerifyDispatchOptions:
    """Check what was given."""
    if batch and live:
        raise BadArgument("--batch and --live cannot be used together", suggestions=("use one of them, or neither",))
    if detach and live:
        raise BadArgument(
            "--detach requires batches, and --live turns them off",
            suggestions=("leave one of them out",),
        )
    if live and fallback != Fallback.FAIL:
        raise BadArgument("--fallback applies to batches, and --live turns them off")
    mode = Mode.BATCH if batch else Mode.LIVE
    dispatch = Dispatch(mode=mode, fallback=Fallback(fallback), cache=not no_cache)
    return VerifyDispatchOptions(
        sending=DispatchOptions(dispatch=dispatch, detach=detach), live=live, cache=not no_cache
    )


VerifySendingOptions = Annotated[VerifyDispatchOptions, Bundle(verify_sending_of, "Dispatch")]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyCommandArguments:
    """What `muster verify` takes."""

    asked: AskedOptions
    sent: VerifySendingOptions
    terms: Annotated[RunTerms, Bundle(terms_with(FORMATS), "Run")]
    patience: PatienceOptions
    fix: Annotated[
        bool,
        Option(
            "--fix",
            help="Apply the changes that findings propose, and verify again. "
            "With --agent CODER, a CLI agent of muster.toml repairs the findings in a worktree.",
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyPlanArguments:
    """What `muster verify plan` takes."""

    asked: Annotated[VerifyArguments, Bundle(asked_of, "Files and agents", hidden=("--keep-going",))]
    sent: Annotated[VerifyDispatchOptions, Bundle(verify_sending_of, "Dispatch", hidden=("--detach",))]
    budget: PlanBudgetOption = None
    allow_unpriced: PlanUnpricedOption = False
