"""What a command loads before it does anything: only what it needs, for most commands are short."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from muster.app.kinds import KINDS, QUESTION, app_kind
from muster.cli.commands import COMMANDS
from muster.cli.line import CommandEntry

from .shell import COMMAND, Shell

# Each of these takes a good part of the time that a short command takes in all.
HEAVY = {"pydantic", "genai_prices", "yaml", "jsonschema", "cryptography", "regex", "httptools"}
AGENTS = {
    f"muster.agents.{kind}"
    for kind in ("anthropic", "openai", "claude_code", "cli", "program", "http.client", "service.agent")
}


ASKED = app_kind(QUESTION.workload)

# What one live question has no use for, besides the orders and workloads of other kinds of work.
NOT_FOR_A_QUESTION = {
    "rich", "zoneinfo", "muster.app.metrics", "muster.app.parts.spending", "muster.app.runs.reports",
    "muster.cli.outcome", "muster.cli.reports", "muster.engine.batches.batcher", "muster.engine.queue.turns",
    "muster.engine.worker", "muster.reporting.runs", "muster.text.document_tree", "muster.text.expressions",
    "muster.text.media_files",
}  # fmt: skip
LOADED = """
import sys
from muster.cli.main import run
code = run(sys.argv[1:])
print("loaded:", *sys.modules, file=sys.stderr)
sys.exit(code)
"""


def loaded(shell: Shell, *words: str) -> set[str]:
    """Name the modules that a command loads, those too that it loads by their names."""
    done = subprocess.run(
        [COMMAND[0], "-c", LOADED, *words],
        cwd=shell.folder,
        env=shell.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.rpartition("loaded:")[2].split())


def test_a_command_that_asks_nobody_loads_no_agent_and_no_reader_of_suites(shell: Shell) -> None:
    found = loaded(shell, "runs", "list", "--json")
    assert "muster.store.sqlite.store" in found
    assert not found & (HEAVY | AGENTS | {"rich", "tomllib", "muster.suites.format", "muster.verify.declaration"})


def test_a_question_to_a_script_loads_no_other_kind_of_agent(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "muster.toml").write_text('[agents.here]\nkind = "scripted"\n')
    found = loaded(shell, "ask", "here", "hello", "--json")
    assert "muster.agents.scripted" in found
    assert not found & (HEAVY | AGENTS)


def test_a_question_loads_nothing_that_only_other_commands_need(shell: Shell) -> None:
    found = loaded(shell, "ask", "sim/echo", "hello")
    orders = {known.kind.order.partition(":")[0] for known in KINDS if known.kind.order and known is not ASKED}
    workloads = {known.kind.module for known in KINDS if known.kind.module and known is not ASKED}
    assert "muster.app.questions.ask" in found
    assert not found & (HEAVY | AGENTS | NOT_FOR_A_QUESTION | orders | workloads)


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
RUNS = {"decimal", "muster.domain.run", "muster.domain.budget"}  # and what they are made of
FILTERED_BY_STATE = {"runs list", "batch list"}  # their options name the states
MAX_MODULES = 65  # of Muster that a help loads; with all orders and their bases they were more than 80
# Each help is written by a process of its own, forked from one that has loaded what all of them need.
ALL_HELPS = """
import json, os, sys
from muster.app.kinds import KINDS
from muster.cli.commands import COMMANDS
from muster.cli.main import run

def write_help(path):
    reading, writing = os.pipe()
    if not os.fork():
        assert run([*path, "--help"]) == 0
        sys.stdout.flush()
        os.write(writing, " ".join(sys.modules).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        print(json.dumps([path, told.read().split()]), file=sys.stderr)
    os.wait()

def write_all(table, path):
    for name, entry in table.items():
        write_help([*path, name])
        write_all(entry.commands, [*path, name])

write_help([])
write_all(COMMANDS, [])
"""


@pytest.fixture(scope="module")
def loaded_by_helps(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, set[str]]:
    """Return which modules each help loads, by the words of its command."""
    shell = Shell(tmp_path_factory.mktemp("helps"))
    done = subprocess.run(
        [COMMAND[0], "-c", ALL_HELPS],
        cwd=shell.folder,
        env=shell.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("Usage: muster") > 100
    return {" ".join(path): set(modules) for path, modules in map(json.loads, done.stderr.splitlines())}


def test_no_help_loads_the_application_or_a_library_but_click(loaded_by_helps: Mapping[str, set[str]]) -> None:
    assert {path: found & NOT_FOR_HELP for path, found in loaded_by_helps.items() if found & NOT_FOR_HELP} == {}


def test_a_help_loads_nothing_of_runs_unless_it_names_their_states(loaded_by_helps: Mapping[str, set[str]]) -> None:
    assert {path for path, found in loaded_by_helps.items() if found & RUNS} == FILTERED_BY_STATE


def test_a_help_loads_the_order_of_its_own_kind_of_work_and_no_other(loaded_by_helps: Mapping[str, set[str]]) -> None:
    orders = {known.kind.order.partition(":")[0] for known in KINDS if known.kind.order}
    loaded = {path: found & orders for path, found in loaded_by_helps.items()}
    assert {path: found for path, found in loaded.items() if len(found) > 1} == {}
    assert loaded["battle"] == loaded["scale"] == {"muster.battles.order"}
    assert loaded[""] == loaded["runs list"] == set()
    many = {path: sum(one.startswith("muster") for one in found) for path, found in loaded_by_helps.items()}
    assert {path: number for path, number in many.items() if number > MAX_MODULES} == {}


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
