"""`muster completion`: the script with which a shell completes commands, options, choices, runs and agents."""

from typing import Annotated

import click
from click.shell_completion import get_completion_class

from muster.cli.line import Argument
from muster.cli.terminal.output import CommonOptions, answer
from muster.domain.errors import BadArgument
from muster.text.words import choice_error

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_MUSTER_COMPLETE"  # by which click knows that the shell asks


def completion(
    common: CommonOptions, shell: Annotated[str, Argument(metavar="SHELL", values=SHELLS, help="The shell.")]
) -> None:
    """Print the completion script for bash, zsh or fish.

    bash: eval "$(muster completion bash)" in ~/.bashrc

    zsh: eval "$(muster completion zsh)" in ~/.zshrc, after compinit

    fish: muster completion fish > ~/.config/fish/completions/muster.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise BadArgument(choice_error(SHELLS, shell), argument="shell")
    root = click.get_current_context().find_root()
    script = found(root.command, {}, "muster", VARIABLE).source()
    if shell == "fish":  # click splits at every comma, and cuts descriptions that have one
        script = script.replace('string split "," $completion', 'string split --max 1 "," $completion')
    answer(common, {"shell": shell, "script": script}, lambda console: console.out(script, highlight=False))
