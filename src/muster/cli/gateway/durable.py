"""`muster durable`: a program that can be killed and started again, and pays for no answer twice."""

from typing import Annotated

from muster.app import Muster
from muster.app.gateway.gateway import HeldRun
from muster.cli.gateway.options import CommandArgument
from muster.cli.gateway.program import run_behind_gateway
from muster.cli.line import Option
from muster.cli.options import UnpricedOption
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, note, warn
from muster.domain.errors import Interrupted
from muster.domain.money import show_usd

SHOWN = 5  # keys


def durable(
    common: CommonOptions,
    command: CommandArgument,
    name: Annotated[str, Option("--name", metavar="NAME", help="The name of the run; the same again goes on with it.")],
    again: Annotated[bool, Option("--again", help="Begin anew, also if the last attempt did not end well.")] = False,
    allow_unpriced: UnpricedOption = False,
) -> int:
    """Run a program whose model calls are journaled; started again after a failure, it gets its answers from there."""

    async def work(muster: Muster) -> int:
        held = await muster.gateway.hold(name, again=again)
        if held.recorded.count:
            count = held.recorded.count
            note(common, f"going on with run {held.run}: {count} model call{'s' * (count != 1)} made before")
        else:
            note(common, "what the program does besides model calls happens again when it is started again")
        code = 1
        try:
            code = await run_behind_gateway(muster, command, name)
        finally:
            error = None if code == 0 else Interrupted(f"the program ended with {code}")
            await held.end(error)
        _tell(common, held, code)
        return code

    return with_muster(common, work, create=True, allow_unpriced=allow_unpriced)


def _tell(common: CommonOptions, held: HeldRun, code: int) -> None:
    recorded = held.recorded
    if recorded.given:
        answers = "1 answer" if recorded.given == 1 else f"{recorded.given} answers"
        note(common, f"{answers} from the journal, {show_usd(recorded.saved)} not paid again")
    if code == 0 and recorded.left:
        keys = ", ".join(recorded.left[:SHOWN]) + (", …" if len(recorded.left) > SHOWN else "")
        warn(f"{len(recorded.left)} recorded answers were not asked for again: {keys}")
    if code != 0:
        note(common, f"run {held.run} is kept; the same command again goes on with it")
