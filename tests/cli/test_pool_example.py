"""The example of the pool does what its comments say."""

import shutil
from pathlib import Path

import pytest

from .shell import Shell

EXAMPLE = Path(__file__).parents[2] / "examples" / "pool"


@pytest.fixture
def example(shell: Shell) -> Shell:
    for file in EXAMPLE.iterdir():
        shutil.copy(file, shell.folder / file.name)
    return shell


def test_the_example_of_the_pool_runs(example: Shell) -> None:
    assert example.muster("task", "run", "Write a greeting").out == "Write a greeting\n"
    assert example.muster("task", "submit", "Check the greeting", "--role", "critic", "--review").code == 0
    assert example.muster("pool", "start", "--until-idle").code == 0
    assert example.muster("task", "list", "--state", "pending_review", "--json").data()[0]["slot"] == "critic"
    done = example.muster("fan-out", "questions.yaml", "--json").data()["results"]
    assert (len(done), done[0]["output"]) == (3, "Name a risk of the plan.")
    chain = example.muster("chain", "run", "notes.yaml", "--input", "topic=bees")
    assert (chain.code, "Is this a good title: Notes on bees?" in chain.out) == (0, True)
