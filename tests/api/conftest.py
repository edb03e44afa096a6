"""The servers of the API tests: one process, or a whole fleet (`make test-fleet`; some of them always)."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from .fleet import OF_ONE_SERVER, ON_BOTH, ON_FLEET, FleetStore, fleet_store
from .server import TOKENS, Project, Server

MakeProject = Callable[[Path], Project]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "make_project" not in metafunc.fixturenames:
        return
    on_fleet = pytest.param(True, id="fleet", marks=pytest.mark.postgres)
    module = metafunc.module.__name__
    if module in ON_BOTH:
        metafunc.parametrize("make_project", [False, on_fleet], ids=["one", "fleet"], indirect=True, scope="module")
    elif ON_FLEET and module not in OF_ONE_SERVER and not metafunc.definition.get_closest_marker("one_server"):
        metafunc.parametrize("make_project", [on_fleet], indirect=True, scope="module")


@pytest.fixture(scope="module")
def make_project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeProject]:
    """Make projects that are served by one process, or by a fleet."""
    on_fleet = getattr(request, "param", False)
    with ExitStack() as stack:

        def store() -> FleetStore:
            server, template = (request.getfixturevalue(name) for name in ("postgres", "postgres_template"))
            return stack.enter_context(fleet_store(server, template, tmp_path_factory.mktemp("redis")))

        yield lambda folder: Project(folder, fleet=store() if on_fleet else None)


@pytest.fixture
def project(tmp_path: Path, make_project: MakeProject) -> Project:
    return make_project(tmp_path)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, make_project: MakeProject) -> Iterator[Server]:
    """A server of one local user."""
    with make_project(tmp_path_factory.mktemp("server")).serve() as started:
        yield started


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, make_project: MakeProject) -> Iterator[Server]:
    """A server with three users: root, ci and eve."""
    project = make_project(tmp_path_factory.mktemp("shared"))
    project.declare(TOKENS)
    with project.serve() as started:
        yield started
