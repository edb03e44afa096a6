"""What somebody reads who follows one call: the files that `muster ask` passes through are few, and all in the docs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MAX_FILES = 86

# The second of two calls in one process counts, in all its threads: what only loads modules is past by then.
TRACED = """
import json, os, sys, threading
from pathlib import Path
import muster
from muster.cli.main import run

root = str(Path(muster.__file__).parent) + os.sep
walked = {}

def profile(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root) and code.co_name != "<module>":
        walked[code.co_filename.removeprefix(root)] = None

words = ["ask", "sim/echo", "hello"]
first = run(words)
threading.setprofile(profile)
sys.setprofile(profile)
second = run(words)
sys.setprofile(None)
threading.setprofile(None)
print(json.dumps({"codes": [first, second], "files": list(walked)}))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The files of src/muster in which a function was called, in the order in which they were met."""
    folder = tmp_path_factory.mktemp("walk")
    done = subprocess.run(
        [sys.executable, "-c", TRACED],
        cwd=folder,
        env={"HOME": str(folder), "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *answers, found = done.stdout.splitlines()
    assert answers == ["hello", "hello"]
    walk = json.loads(found)
    assert walk["codes"] == [0, 0]
    return list(walk["files"])


def test_one_ask_passes_through_few_files(files: list[str]) -> None:
    assert len(files) <= MAX_FILES, "\n".join([f"{len(files)} files:", *files])


def test_the_page_on_the_architecture_names_every_file_of_the_walk(files: list[str]) -> None:
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = page.partition("## One call")[2].partition("\n## ")[0]
    assert set(files) - set(re.findall(r"`([\w/]+\.py)`", section)) == set()
