"""What every test of the house gets: real services on loopback, and nothing of this machine's settings."""

import gc
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import forkserver
from tests.workers import run_in_workers

# How long an example takes says something about the machine, not about what is tested.
settings.register_profile("house", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

# Objects of tests live for a moment: looking for cycles every 700 allocations found nothing, and cost much.
gc.set_threshold(50_000, 20, 20)

# Whoever starts the tests with nohup, or in the background of a script, has these ignored, which commands inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

SECRETS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL")
PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--workers", type=int, default=1, help="Processes that run tests side by side.")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in workers, if there are to be several; commands of all of them are forked from one process."""
    workers: int = session.config.option.workers
    if workers > 1 and not session.config.option.collectonly:
        forkserver.server()
    return run_in_workers(session, workers)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without looking for garbage: all that is made stays, and every worker spent a third of its time on it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()  # nor is it looked through whenever a test makes garbage


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep keys, addresses and the home folder of this machine away from every test."""
    for name in (*SECRETS, *PROXIES, *(name.lower() for name in PROXIES)):
        monkeypatch.delenv(name, raising=False)
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("MUSTER_HOME", raising=False)
    monkeypatch.delenv("MUSTER_CRASH_AT", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Start a real PostgreSQL on a socket in a folder of its own and give its address."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = shutil.which("postgres")
    where = binaries[-1] if binaries else Path(found).parent if found else None
    assert where is not None, "PostgreSQL is missing; `make test` installs it (Debian package postgresql)"
    # Not in tmp_path: the path of a socket must be short, and another user has to reach it.
    folder = Path(subprocess.check_output(["mktemp", "-d", "/tmp/muster-pg-XXXXXX"], text=True).strip())
    user = _owner(folder)
    data = folder / "data"
    _run(user, [where / "initdb", "-D", data, "-U", "muster", "-A", "trust", "--no-sync"])
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    _run(user, [where / "pg_ctl", "-D", data, "-w", "-t", "180", "-l", folder / "log", "-o", options, "start"])
    try:
        yield f"host={folder} user=muster dbname=postgres"
    finally:
        _run(user, [where / "pg_ctl", "-D", data, "-w", "-t", "180", "-m", "immediate", "stop"])
        shutil.rmtree(folder)


def _owner(folder: Path) -> str | None:
    """PostgreSQL refuses to run as root: give the folder to its own user."""
    if os.geteuid() != 0:
        return None
    account = pwd.getpwnam("postgres")
    os.chown(folder, account.pw_uid, account.pw_gid)
    return "postgres"


def _run(user: str | None, command: list[Path | str]) -> None:
    subprocess.run(
        [str(part) for part in command],
        user=user,
        cwd="/tmp",
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        timeout=200,
    )
