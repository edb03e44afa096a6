"""A store found from a sub-folder, and a store that can only be read: a file, a folder, a file system."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.variants import first_of

from .shell import PATIENCE, Result, Shell
from .test_full_disk import ENVIRONMENT, mounting

SUITE = """
schema_version: 1
skill_or_agent: desk
cases:
  - id: desk/one
    input: {messages: [{role: user, content: hello}]}
    expected: {output: [{kind: contains, value: hello}]}
"""

# Permissions bind root too once it has lost the capability to ignore them.
BOUND = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()


def test_a_sub_folder_uses_the_store_above_it_and_gets_none_of_its_own(shell: Shell) -> None:
    shell.write("muster.toml", '[agents.parrot]\nkind = "scripted"\n')
    shell.muster("ask", "sim/echo", "hello", "--name", "above")
    deep = shell.folder / "sub/deep"
    deep.mkdir(parents=True)
    below = Shell(deep, {"HOME": str(shell.folder)})
    assert below.muster("ask", "parrot", "hello").code == 0
    assert [run["name"] for run in below.muster("runs", "list", "--json").data()] == [None, "above"]
    assert below.muster("runs", "list", "--home", "own", "--json").data() == []
    assert list(deep.iterdir()) == []
    below.variables["MUSTER_HOME"] = str(deep / "own")
    assert below.muster("runs", "list", "--json").data() == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("runs list", 0),
        ("runs list --json", 0),
        ("runs show last", 5),
        ("report last", 5),
        ("batch list", 0),
        ("baseline list", 0),
        ("baseline remove x", 5),
        ("baseline set x y", 5),
        ("runs rejudge x --judge sim/echo", 5),
        ("runs import nowhere.jsonl", 5),
        ("store info", 5),
        ("store vacuum", 5),
        ("doctor", 0),
        ("batch reconcile", 0),
        ("plan suite.yaml --agent sim/echo", 0),
    ],
)
def test_a_command_that_only_reads_makes_no_store(shell: Shell, words: str, code: int) -> None:
    shell.write("suite.yaml", SUITE)
    assert shell.muster(*words.split()).code == code
    assert [path.name for path in shell.folder.iterdir()] == ["suite.yaml"]
    assert shell.muster("ask", "sim/echo", "hello").code == 0
    assert (shell.folder / ".muster/muster.db").is_file()


# Several commands in one process: only the first has to load the program.
COMMANDS = """
import contextlib, io, json, sys
from muster.cli.main import run
for words in sys.argv[1:]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words.split())
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


def bound(shell: Shell, *commands: str) -> list[Result]:
    """Run commands in a process that permissions bind."""
    command = [*BOUND, sys.executable, "-c", COMMANDS, *commands]
    done = subprocess.run(
        command, cwd=shell.folder, env=shell.environment, stdout=subprocess.PIPE, check=True, timeout=PATIENCE
    )
    return [Result(*json.loads(line)) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("kind", first_of(["folder with a log and memory", "file", "folder", "folder with a log"], 2))
def test_a_read_only_store_is_listed_and_reported(shell: Shell, kind: str) -> None:
    shell.write("suite.yaml", SUITE)
    assert shell.muster("run", "suite.yaml", "--agent", "sim/echo", "--name", "kept").code == 0
    home = shell.folder / ".muster"
    if "log" in kind:
        shell.crash("store.after_commit", "ask", "sim/echo", "hello", "--name", "crashed")
        if "memory" not in kind:
            (home / "muster.db-shm").unlink()
        assert (home / "muster.db-wal").stat().st_size > 0
    for file in home.iterdir():
        file.chmod(0o444)
    if kind != "file":
        home.chmod(0o555)
    try:
        before = {path.name: path.read_bytes() for path in home.iterdir()}
        listed, reported, refused = bound(shell, "runs list --json", "report kept", "ask sim/echo hello")
        assert {path.name: path.read_bytes() for path in home.iterdir()} == before
    finally:
        home.chmod(0o755)
    names = {run["name"] for run in listed.data()}
    assert (listed.code, names) == (0, {"kept", "crashed"} if "log" in kind else {"kept"})
    assert "muster.db is read-only; it can be read" in listed.err
    assert (reported.code, "desk/one" in reported.out) == (0, True)
    assert refused.code == 4
    assert "muster.db is read-only" in refused.err


MOUNTED = """
set -e
mount -t tmpfs none "$1"
cd "$1"
muster() { "$PYTHON" -m muster "$@" > "$OUT/$name.out" 2> "$OUT/$name.err" || echo $? > "$OUT/$name.code"; }
name=first; muster ask sim/echo hello --name kept
mount -o remount,ro none "$1"
name=list; muster runs list --json
name=ask; muster ask sim/echo again
"""


def test_a_store_on_a_read_only_file_system_is_listed(tmp_path: Path) -> None:
    disk, out = tmp_path / "disk", tmp_path / "out"
    for folder in (disk, out):
        folder.mkdir()
    environment = {**ENVIRONMENT, "HOME": str(tmp_path), "OUT": str(out), "PYTHON": sys.executable}
    command = [*mounting(), "bash", "-c", MOUNTED, "mounted", str(disk)]
    subprocess.run(command, env=environment, check=True, timeout=PATIENCE)
    assert [run["name"] for run in json.loads((out / "list.out").read_text())["data"]] == ["kept"]
    assert not (out / "list.code").exists()
    assert (out / "ask.code").read_text() == "4\n"
    assert "is read-only" in (out / "ask.err").read_text()
