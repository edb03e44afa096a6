"""The options of every command that starts a run: live or in batches, and whether to stay until it is done."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from muster.cli.bundle import bundle

if TYPE_CHECKING:
    from muster.domain.run import Dispatch


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
        str, typer.Option("--dispatch", metavar="live|batch", help="Batches cost less and take minutes to hours.")
    ] = "live",
    detach: Annotated[
        bool, typer.Option("--detach", help="Hand the batches in and leave; go on later, in any process.")
    ] = False,
    fallback: Annotated[
        str, typer.Option("--fallback", metavar="live|fail", help="What becomes of calls that failed in 3 batches.")
    ] = "fail",
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Do not mark shared prefixes for the provider's cache.")
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
    if fallback not in list(Fallback):
        raise BadArgument(f"{fallback!r} is no way to fall back", suggestions=tuple(Fallback))
    return Sending(dispatch=Dispatch(mode=mode, fallback=Fallback(fallback), cache=not no_cache), detach=detach)


sent = bundle("sending", sending_of)
