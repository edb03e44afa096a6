"""How agents that verify are asked: live, in batches, or each as its declaration says."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from muster.cli.bundle import bundle
from muster.cli.line import Option
from muster.cli.sending import Sending, fallback_of

if TYPE_CHECKING:
    from muster.app.verify_survey import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySending:
    """How the calls of a verification are sent."""

    sending: Sending
    live: bool = False  # whatever the agents' own declarations say
    cache: bool = True

    def require_batches(self, parts: "Iterable[Part]") -> None:
        """Raise BadArgument when batches are to be left to the provider and no agent that was chosen goes into one."""
        from muster.domain.errors import BadArgument
        from muster.domain.run import Mode

        asked = self.sending.dispatch.mode is Mode.BATCH or any(part.batch for part in parts)
        if self.sending.detach and not asked:
            raise BadArgument(
                "--detach leaves batches to the provider, and none of these agents is asked in one",
                suggestions=("add --batch", "or write `dispatch: batch` in the declaration of an agent"),
            )


def verify_sending_of(
    batch: Annotated[
        bool, Option("--batch", help="Ask in batches, which cost less and take minutes to hours.")
    ] = False,
    detach: Annotated[
        bool, Option("--detach", help="Hand the batches in and leave; go on with `muster verify resume`.")
    ] = False,
    live: Annotated[bool, Option("--live", help="Ask live, also agents that are declared for batches.")] = False,
    fallback: Annotated[
        str, Option("--fallback", metavar="live|fail", help="What becomes of calls that failed in 3 batches.")
    ] = "fail",
    no_cache: Annotated[bool, Option("--no-cache", help="Do not mark the files for the provider's cache.")] = False,
) -> VerifySending:
    """Check what was given."""
    from muster.domain.errors import BadArgument
    from muster.domain.run import Dispatch, Fallback, Mode

    if batch and live:
        raise BadArgument("--batch and --live exclude each other", suggestions=("give one of them, or neither",))
    if detach and live:
        raise BadArgument(
            "--detach leaves batches to the provider, and with --live there are none",
            suggestions=("leave one of them out",),
        )
    if live and fallback != Fallback.FAIL:
        raise BadArgument("--fallback is about batches, and with --live there are none")
    mode = Mode.BATCH if batch else Mode.LIVE
    dispatch = Dispatch(mode=mode, fallback=fallback_of(fallback), cache=not no_cache)
    return VerifySending(sending=Sending(dispatch=dispatch, detach=detach), live=live, cache=not no_cache)


verify_sent = bundle("sent", verify_sending_of)
