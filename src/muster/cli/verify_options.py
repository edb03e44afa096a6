"""The options that choose what is verified and by whom. Shared by `verify` and `verify plan`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from muster.cli.bundle import bundle
from muster.cli.line import Argument, Option

if TYPE_CHECKING:
    from muster.app.verifications import VerifyChoice
    from muster.app.verify_values import Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
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

    def selection(self, markers: Path) -> "Selection":
        """Say how files are chosen; with --changed a word is the commit to compare with."""
        from muster.app.verify_values import Selection

        changed = self.changed is not None
        return Selection(
            paths=() if changed else self.paths,
            changed=changed,
            ref=self._commit() if changed else None,
            staged=self.staged,
            pending=markers if self.pending else None,
        )

    def choice(self, *, live: bool, cache: bool) -> "VerifyChoice":
        """Say who verifies, and how."""
        from muster.app.verifications import VerifyChoice

        return VerifyChoice(
            agents_file=self.agents_file,
            model=self.model,
            waves=self.waves,
            agents=self.agents,
            keep_going=self.keep_going,
            live=live,
            cache=cache,
        )

    def _commit(self) -> str | None:
        from muster.domain.errors import BadArgument

        words = [*([self.changed] if self.changed else []), *self.paths]
        if len(words) > 1:
            raise BadArgument(
                "with --changed there is at most one word, the commit to compare with",
                suggestions=("muster verify --changed main", "or name files and leave --changed out"),
            )
        return words[0] if words else None


def asked_of(
    paths: Annotated[
        list[str] | None, Argument(metavar="PATH…", help="Files and folders; ./plan if it is called like a command.")
    ] = None,
    changed: Annotated[
        str | None,
        Option("--changed", metavar="[REF]", bare="", help="What differs from a commit (HEAD), and new files."),
    ] = None,
    staged: Annotated[bool, Option("--staged", help="What the next commit would hold, as it is staged.")] = False,
    pending: Annotated[bool, Option("--pending", help="What the markers in .muster/pending name.")] = False,
    agent: Annotated[
        list[str] | None, Option("--agent", "-a", metavar="A", help="Only this agent; may stand more than once.")
    ] = None,
    wave: Annotated[
        list[int] | None, Option("--wave", metavar="N", min=1, help="Only this wave; may stand more than once.")
    ] = None,
    keep_going: Annotated[
        bool, Option("--keep-going", help="Run later waves whatever became of the earlier ones.")
    ] = False,
    allow_empty: Annotated[bool, Option("--allow-empty", help="Nothing to verify is no failure.")] = False,
    agents: Annotated[
        Path | None,
        Option("--agents", metavar="FILE", help="Who verifies (verify.yaml; without one, the shipped agents)."),
    ] = None,
    model: Annotated[str | None, Option("--model", metavar="M", help="Who is asked for agents that name none.")] = None,
) -> Asked:
    """Collect what was given."""
    return Asked(
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


asked = bundle("asked", asked_of)
