"""What every test of the house gets: real services on loopback, and nothing of this machine's settings."""

import gc
import os
import re
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, is_hypothesis_test, settings
from hypothesis import strategies as st

from tests import forkserver
from tests.postgres import new_database, postgres_server, url_of
from tests.variants import mark_others
from tests.workers import run_in_workers

# How long an example takes says something about the machine, not about what is tested. `make chaos` takes the profile
# "full" for every property; the examples of each run are others.
settings.register_profile("house", deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("full", settings.get_profile("house"), max_examples=100)
settings.load_profile("house")

# Objects of tests live for a moment: looking for cycles every 700 allocations found nothing, and cost much.
gc.set_threshold(50_000, 20, 20)

# Whoever starts the tests with nohup, or in the background of a script, has these ignored, which commands inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

PARSING = tuple(
    f"tests/{name}.py"
    for name in (
        "test_declared_once",
        "test_kinds",
        "test_names",
        "test_near_duplicates",
        "test_rooms",
        "store/test_base",
    )
)
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
        _read_modules_and_alphabets()
        if any(item.nodeid.startswith("tests/api/") for item in session.items):
            from tests.api import contract

            contract.routes()  # every worker would make them again
    return run_in_workers(session, workers)


@given(st.tuples(st.integers(), st.text(), st.characters(codec="utf-8")))
def _read_modules_and_alphabets(_: object) -> None:
    """Let Hypothesis look for constants in every module before workers are forked: each of them would do it again."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without looking for garbage: all that is made stays, and every worker spent a third of its time on it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()  # nor is it looked through whenever a test makes garbage


@pytest.hookimpl(tryfirst=True)  # before those without a mark are chosen
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses the one PostgreSQL, and the variants of costly tests that do not run every time."""
    mark_others(items)
    for item in items:
        if item.nodeid.startswith(PARSING):
            item.add_marker(pytest.mark.source)
        if "postgres" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.postgres)
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.property)


_numbers = count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder of its own for a test; pytest's own looks through those of all other tests for a free name."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}{next(_numbers)}"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep keys, addresses and the home folder of this machine away from every test."""
    for name in (*SECRETS, *PROXIES, *(name.lower() for name in PROXIES)):
        monkeypatch.delenv(name, raising=False)
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("MUSTER_HOME", raising=False)
    monkeypatch.delenv("MUSTER_DATABASE_URL", raising=False)
    monkeypatch.delenv("MUSTER_CRASH_AT", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Start a real PostgreSQL on a socket in a folder of its own and give its address."""
    with postgres_server() as server:
        yield server.conninfo


@pytest.fixture(scope="session")
def postgres_template(postgres: str) -> str:
    """Make a database with empty tables, which copies are made of: much quicker than to make the tables again."""
    from muster.store.postgres.connection import PostgresConnection
    from muster.store.postgres.failures import parse_address
    from muster.store.postgres.versions import migrate

    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("CREATE DATABASE template_of_tests")
    connection = PostgresConnection(parse_address(url_of(postgres, "template_of_tests")))
    migrate(connection)
    connection.close()
    return "template_of_tests"


@pytest.fixture
def database_url(postgres: str, postgres_template: str) -> Iterator[str]:
    """Make a database of its own for a test, with empty tables, and return its address."""
    with new_database(postgres, postgres_template) as url:
        yield url
