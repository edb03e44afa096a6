"""Which database the tests of the engine run on: SQLite, and money on both; all on PostgreSQL if a variable says so."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine.stores import DATABASES, TestDatabases

ON_BOTH = ("tests.engine.test_budget",)
OF_FILES = ("tests.engine.test_call_life", "tests.engine.batches.test_batch_life")  # they read the file itself


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module = metafunc.module.__name__
    chosen: list[Any] = [os.environ.get("MUSTER_TEST_DATABASE", "sqlite")]
    if module in ON_BOTH:
        chosen = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
    elif module in OF_FILES or metafunc.definition.get_closest_marker("sqlite_file"):
        chosen = ["sqlite"]
    if chosen != ["sqlite"]:
        metafunc.parametrize("engine_database", chosen, indirect=True)


@pytest.fixture(autouse=True)
def engine_database(request: pytest.FixtureRequest) -> Iterator[str]:
    """Choose the database of a test."""
    name = getattr(request, "param", "sqlite")
    if name == "sqlite":
        yield name
        return
    databases = TestDatabases(request.getfixturevalue("postgres"), request.getfixturevalue("postgres_template"))
    DATABASES.append(databases)
    yield name
    DATABASES.remove(databases)
    databases.drop()
