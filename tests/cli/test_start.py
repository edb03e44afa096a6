"""What a command loads before it does anything: only what it needs, for most commands are short."""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from muster.cli.commands import COMMANDS
from muster.cli.line import CommandEntry

from .shell import COMMAND, Shell

# Each of these takes a good part of the time that a short command takes in all.
HEAVY = {"pydantic", "genai_prices", "yaml", "jsonschema", "cryptography", "regex", "httptools"}
KINDS = {
    f"muster.agents.{kind}"
    for kind in ("anthropic", "openai", "claude_code", "cli", "program", "http.client", "service.agent")
}


def loaded(shell: Shell, *words: str) -> set[str]:
    """Name the modules that a command loads."""
    python, *rest = COMMAND
    done = subprocess.run(
        [python, "-X", "importtime", *rest, *words],
        cwd=shell.folder,
        env=shell.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


def test_a_command_that_asks_nobody_loads_no_agent_and_no_reader_of_suites(shell: Shell) -> None:
    found = loaded(shell, "runs", "list", "--json")
    assert "muster.store.sqlite.store" in found
    assert not found & (HEAVY | KINDS | {"rich", "tomllib", "muster.suites.format", "muster.verify.declaration"})


def test_a_question_to_a_script_loads_no_other_kind_of_agent(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "muster.toml").write_text('[agents.here]\nkind = "scripted"\n')
    found = loaded(shell, "ask", "here", "hello", "--json")
    assert "muster.agents.scripted" in found
    assert not found & (HEAVY | KINDS)


def entries(table: Mapping[str, CommandEntry], path: str = "") -> Iterator[tuple[str, CommandEntry]]:
    for name, entry in table.items():
        yield f"{path}{name}", entry
        yield from entries(entry.commands, f"{path}{name} ")


def test_what_the_table_says_of_a_command_is_what_its_own_help_begins_with() -> None:
    told = {path: entry for path, entry in entries(COMMANDS) if not entry.commands}
    assert len(told) > 40
    assert [path for path, entry in told.items() if not own_words(entry).startswith(entry.line)] == []


def test_the_help_of_a_command_whose_options_are_quick_to_load_is_in_the_table_as_a_whole() -> None:
    quick = {path: entry for path, entry in entries(COMMANDS) if entry.arguments and not entry.commands}
    assert {path: own_words(entry) for path, entry in quick.items()} == {
        path: entry.line for path, entry in quick.items()
    }


# What a help has no use for: the application, and every library but click.
NOT_FOR_HELP = {
    "asyncio", "msgspec", "pydantic", "rich", "yaml", "muster.app.muster", "muster.engine", "muster.settings",
}  # fmt: skip
ALL_HELPS = """
import sys
from muster.cli.commands import COMMANDS
from muster.cli.main import run
unwanted = set(sys.argv[1].split())

def write_help(table, path):
    for name, entry in table.items():
        before = set(sys.modules)
        assert run([*path, name, "--help"]) == 0
        for module in sorted((set(sys.modules) - before) & unwanted):
            print(*path, name, "loads", module, file=sys.stderr)
        write_help(entry.commands, [*path, name])

write_help(COMMANDS, [])
"""


def test_no_help_loads_the_application_or_a_library_but_click(shell: Shell) -> None:
    done = subprocess.run(
        [COMMAND[0], "-c", ALL_HELPS, " ".join(NOT_FOR_HELP)],
        cwd=shell.folder,
        env=shell.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("Usage: muster") > 100
    assert done.stderr == ""


def own_words(entry: CommandEntry) -> str:
    return " ".join((entry.load().__doc__ or "").split())


def test_the_help_loads_no_command(shell: Shell) -> None:
    found = loaded(shell, "--help")
    assert "click" in found
    # The kinds of work are loaded: some make commands.
    others = {
        name for name in found if name not in ("muster.app", "muster.app.runs") and "muster.app.kinds" not in name
    }
    assert not [name for name in others if name.startswith(("muster.app", "muster.cli.runs", "muster.cli.suites"))]
