"""What docs/QUESTIONS.md says can be typed: every command exists with its options, and every setting is read."""

import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest

from muster.cli.commands import app
from muster.cli.line import CliGroup
from muster.settings.file import read_configuration

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "QUESTIONS.md").read_text(encoding="utf-8")
COMMANDS = sorted(
    {found.partition("#")[0].strip() for found in re.findall(r"^muster .*|(?<=`)muster [^`]+", PAGE, re.M)}
)
SETTINGS = re.findall(r"```toml\n(.*?)```", PAGE, re.S)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_takes_the_options_it_is_shown_with(line: str) -> None:
    words = shlex.split(line)[1:]
    command: click.Command = app
    context = click.Context(app)
    while isinstance(command, click.Group) and words:
        if words[0].startswith("-") and isinstance(command, CliGroup):
            command = command.default() or command
            break
        found = command.get_command(context, words.pop(0))
        assert found is not None
        command = found
    known = {name for parameter in command.get_params(context) for name in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize("text", SETTINGS)
def test_settings_are_read(text: str) -> None:
    read_configuration(tomllib.loads(text))


def test_pages_of_docs_are_linked_from_their_list() -> None:
    listed = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"({page.name})" not in listed] == ["README.md"]
