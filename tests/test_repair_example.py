"""The example in examples/repair does what it says: an agent repairs a finding on a branch, which then is merged."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.git.repository import Repository

EXAMPLE = Path(__file__).parent.parent / "examples" / "repair"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A copy of the example in a repository, with the Python of these tests as the first on PATH."""
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".muster", "__pycache__"))
    Repository(tmp_path).commit()
    return Shell(tmp_path, {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"})


def test_the_command_of_the_example_repairs_and_its_work_is_merged(shell: Shell) -> None:
    (line,) = (line for line in (EXAMPLE / "muster.toml").read_text().splitlines() if "muster verify" in line)
    command = line.removeprefix("#").split()
    assert shell.muster("verify", "src").code == 1
    done = shell.muster(*command[1:])
    assert done.code == 0, done
    assert "+    return ast.literal_eval(text)" in done.out
    assert "+import ast" in done.out
    assert "    return eval(text)" in (shell.folder / "src/settings.py").read_text()
    merge = next(line for line in done.out.splitlines() if line.startswith("merge it with: muster "))
    assert shell.muster(*merge.removeprefix("merge it with: muster ").split()).code == 0
    assert shell.muster("verify", "src").code == 0
