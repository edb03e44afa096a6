"""`muster record` and `muster replay`: the model calls of a program on a tape, and the program without a provider."""

from pathlib import Path
from typing import Annotated

from muster.app import Muster
from muster.cli.gateway.options import CommandArgument
from muster.cli.gateway.program import run_behind_gateway
from muster.cli.line import Argument, Option
from muster.cli.options import UnpricedOption
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, note, warn
from muster.domain.errors import BadArgument

SUFFIXES = (".jsonl", ".jsonl.gz")
SHOWN = 20  # misses


def record(
    common: CommonOptions,
    command: CommandArgument,
    tape: Annotated[
        Path, Option("--output", "-o", metavar="TAPE", help="The file, which ends with .jsonl or .jsonl.gz.")
    ],
    allow_unpriced: UnpricedOption = False,
) -> int:
    """Run a program and write its model calls with their answers to a tape; ends with the exit code of the program."""
    name = _name_of(tape)

    async def work(muster: Muster) -> int:
        held = await muster.gateway.hold(name, again=True)
        try:
            code = await run_behind_gateway(muster, command, name)
        finally:
            await held.end()
        run, written = await muster.runs.export(held.run, tape)
        note(common, f"{run.calls.done} model calls are on {tape} ({written} entries)")
        return code

    return with_muster(common, work, create=True, allow_unpriced=allow_unpriced)


def replay(
    common: CommonOptions,
    tape: Annotated[Path, Argument(metavar="TAPE", help="A file that `muster record` wrote.")],
    command: CommandArgument,
) -> int:
    """Run a program with the answers of a tape, and no provider; ends with 1 if a request was not on it."""

    async def work(muster: Muster) -> int:
        async with muster.gateway.replay(tape) as recorded:
            code = await run_behind_gateway(muster, command, _name_of(tape))
            for miss in recorded.misses[:SHOWN]:
                warn(miss)
            if recorded.misses:
                count = len(recorded.misses)
                warn(f"{'1 request was' if count == 1 else f'{count} requests were'} not on {tape}")
            left = recorded.left
            note(common, f"{recorded.given} answers from {tape}" + (f", {len(left)} not asked for" if left else ""))
            return 1 if recorded.misses else code

    return with_muster(common, work, create=True, keyless=True)


def _name_of(tape: Path) -> str:
    suffix = next((suffix for suffix in SUFFIXES if tape.name.endswith(suffix)), None)
    if suffix is None or tape.name == suffix:
        raise BadArgument(f"{tape} must end with {' or '.join(SUFFIXES)}", suggestions=("tests/tapes/story.jsonl.gz",))
    name = tape.name.removesuffix(suffix)
    return "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in name).strip("-") or "tape"
