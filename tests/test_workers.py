"""The tests themselves: whatever becomes of a worker, no test counts as passed that was not."""

import subprocess
import sys
from pathlib import Path

from tests.forkserver import ROOT

PLUGIN = """
from tests.workers import run_in_workers

def pytest_runtestloop(session):
    return run_in_workers(session, 3)
"""

TESTS = """
import os, time
from pathlib import Path
import pytest

@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    yield folder
    Path("torn").open("a").write(f"{os.getpid()}\\n")

@pytest.mark.parametrize("number", range(60))
def test_passes(number, shared):
    (shared / str(number)).write_text("")

@pytest.mark.page
@pytest.mark.parametrize("number", range(4))
def test_in_the_browser(number):
    Path("pages").open("a").write(f"{os.getpid()}\\n")

def test_prints_and_fails():
    print("what it printed")
    assert 1 == 2

def test_exits():
    os._exit(0)

def test_is_killed():
    os.kill(os.getpid(), 9)

@pytest.mark.timeout(1)
def test_hangs():
    time.sleep(60)

@pytest.mark.page
def test_stays(shared):
    Path("stays").touch()
    time.sleep(60)

@pytest.mark.postgres
def test_fails_beside_it():
    while not Path("stays").exists():
        time.sleep(0.01)
    assert 1 == 2

@pytest.mark.source
def test_parses():
    pass

def test_after_all():
    pass
"""


def run(folder: Path, *options: str) -> str:
    (folder / "conftest.py").write_text(PLUGIN)
    (folder / "test_things.py").write_text(TESTS)
    (folder / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n    page: in a browser\n    postgres: with a server\n    source: parses it\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", *options],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_every_test_is_reported_once_whatever_becomes_of_its_worker(tmp_path: Path) -> None:
    said = run(tmp_path, "-k", "not stays and not beside")
    assert "4 failed, 66 passed" in said
    assert "test_exits - its worker ended with 0" in said
    assert "test_is_killed - its worker ended with -9" in said
    assert "test_hangs - Failed: Timeout" in said
    assert "what it printed" in said
    assert len(set((tmp_path / "pages").read_text().split())) == 1
    torn = (tmp_path / "torn").read_text().split()
    assert 1 <= len(torn) == len(set(torn)) <= 5  # by every worker that was not killed, once


def test_a_session_stops_at_the_first_failure_when_it_is_told_to(tmp_path: Path) -> None:
    said = run(tmp_path, "-x", "-k", "test_prints_and_fails or test_after_all or test_hangs")
    assert "1 failed" in said
    assert "stopping after 1 failures" in said


def test_a_worker_that_is_ended_in_a_test_ends_what_fixtures_started(tmp_path: Path) -> None:
    run(tmp_path, "-x", "-k", "test_stays or test_fails_beside_it")
    assert len((tmp_path / "torn").read_text().split()) == 1
