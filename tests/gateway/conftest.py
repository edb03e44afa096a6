"""A server whose gateway has the rehearsal server behind it."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from muster.testing.sim import RehearsalProcess, ServerProcess
from tests.api.server import Project, Server
from tests.forkserver import ROOT, Forked


class PricedRehearsal(RehearsalProcess):
    """The rehearsal server of the command, which counts what it answers at the prices of the models that it plays."""

    def _begin(self, arguments: Sequence[str]) -> ServerProcess:
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        return Forked("muster", ("sim", *arguments), folder=ROOT, environment=environment, shows_errors=True)


UPSTREAM_KEY = "upstream-key-0123456789"


def project_with(folder: Path, upstream: PricedRehearsal, settings: str = "") -> Project:
    """Return a project whose upstreams are a rehearsal server."""
    project = Project(folder)
    project.declare("", settings)
    project.variables |= {
        "ANTHROPIC_BASE_URL": upstream.anthropic,
        "OPENAI_BASE_URL": upstream.openai,
        "ANTHROPIC_API_KEY": UPSTREAM_KEY,
        "OPENAI_API_KEY": UPSTREAM_KEY,
    }
    return project


@pytest.fixture(scope="module")
def upstream() -> Iterator[PricedRehearsal]:
    with PricedRehearsal(require_key=UPSTREAM_KEY) as process:
        yield process


@pytest.fixture(scope="module")
def gateway(upstream: PricedRehearsal, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with project_with(tmp_path_factory.mktemp("gateway"), upstream).serve() as server:
        yield server
