"""A real llama.cpp with a tiny model on loopback."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.llama.model import CONTEXT, write_model

FOLDER = Path(__file__).parent
PYTHON = FOLDER.parent.parent / ".venv-llama/bin/python"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.llama)


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of a server that answers one call at a time."""
    assert PYTHON.exists(), "run `make test-llama`, which prepares its environment"
    folder = tmp_path_factory.mktemp("llama")
    write_model(folder / "tiny.gguf")
    command = [str(PYTHON), str(FOLDER / "program.py"), str(folder / "tiny.gguf"), str(CONTEXT)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line, (folder / "log").read_text(errors="replace")[-2_000:]
            yield str(json.loads(line)["address"])
        finally:
            process.stdin.close()
            process.terminate()
