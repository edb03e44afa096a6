from collections.abc import Iterator
from pathlib import Path

import pytest

from .server import TOKENS, Project, Server


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of one local user."""
    with Project(tmp_path_factory.mktemp("server")).serve() as started:
        yield started


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with three users: root, ci and eve."""
    project = Project(tmp_path_factory.mktemp("shared"))
    project.declare(TOKENS)
    with project.serve() as started:
        yield started
