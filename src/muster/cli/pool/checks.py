"""Commands that check merged files: taken apart without a shell."""

import shlex

from muster.domain.errors import BadArgument
from muster.text.shell import shell_syntax


def check_of(given: str | None) -> tuple[str, ...]:
    """Return the command of --check, which no shell runs; raises BadArgument for what only a shell understands."""
    if given is None:
        return ()
    if (syntax := shell_syntax(given.strip())) is not None:
        shell = shlex.join(["sh", "-c", given.strip()])
        raise BadArgument(
            f"is run without a shell, and {syntax!r} is shell syntax",
            argument="check",
            suggestions=(f"ask for a shell: --check {shlex.quote(shell)}", f"or put {syntax!r} into single quotes"),
        )
    try:
        command = tuple(shlex.split(given))
    except ValueError as error:
        raise BadArgument(f"is not a command: {error}", argument="check") from None
    if not command:
        raise BadArgument("is empty, so it would check nothing", argument="check")
    return command
