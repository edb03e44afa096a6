"""The options of every command that starts a run: live or in batches, and whether to stay until it is done."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from muster.cli.bundle import bundle
from muster.cli.line import Option

if TYPE_CHECKING:
    from muster.domain.run import Dispatch, Fallback


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """How the calls of a run are sent; detached, its batches are handed in and left to the provider."""

    dispatch: "Dispatch"
    detach: bool = False

    @property
    def batch(self) -> bool:
        """Whether calls go into batches."""
        return self.dispatch.mode == "batch"


def sending_of(
    dispatch: Annotated[
        str, Option("--dispatch", metavar="live|batch", help="Batches cost less and take minutes to hours.")
    ] = "live",
    detach: Annotated[
        bool, Option("--detach", help="Hand the batches in and leave; go on later, in any process.")
    ] = False,
    fallback: Annotated[
        str, Option("--fallback", metavar="live|fail", help="What becomes of calls that failed in 3 batches.")
    ] = "fail",
    no_cache: Annotated[
        bool, Option("--no-cache", help="Do not mark shared prefixes for the provider's cache.")
    ] = False,
) -> Sending:
    """Check what was given."""
    from muster.domain.errors import BadArgument
    from muster.domain.run import Dispatch, Fallback, Mode, mode_of

    mode = mode_of(dispatch)
    if detach and mode is not Mode.BATCH:
        raise BadArgument(
            "--detach leaves batches to the provider, and this run has none", suggestions=("add --dispatch batch",)
        )
    if mode is not Mode.BATCH and (fallback != Fallback.FAIL or no_cache):
        raise BadArgument("--fallback and --no-cache are about batches", suggestions=("add --dispatch batch",))
    return Sending(dispatch=Dispatch(mode=mode, fallback=fallback_of(fallback), cache=not no_cache), detach=detach)


def fallback_of(name: str) -> "Fallback":
    """Read what becomes of calls that failed in batches."""
    from muster.domain.errors import BadArgument
    from muster.domain.run import Fallback

    if name not in list(Fallback):
        raise BadArgument(f"{name!r} is no way to fall back", suggestions=tuple(Fallback))
    return Fallback(name)


sent = bundle("sending", sending_of)
