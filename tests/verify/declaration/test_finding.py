"""Which files declare verification agents, and which are suites."""

from pathlib import Path

import pytest

from muster.app.base.file_kinds import is_declaration
from muster.app.project.validation import sorted_out
from muster.domain.errors import BadFile, NotFound
from tests.verify.declaration.agents import write

AGENTS = "agents: []\n"
SUITE = "schema_version: 1\ncases: []\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("verify.yaml", "whatever: ["),
        ("Verify.yml", SUITE),
        ("verify.toml", ""),
        ("checks.yaml", f"model: a\n{AGENTS}"),
        ("checks.yaml", '{"agents": []}'),
        ("checks.yaml", '{\n  "model": "a",\n  "agents": []\n}'),
        ("checks.toml", 'model = "a"\n[[agents]]\nname = "b"\n'),
    ],
)
def test_a_file_declares_agents_by_its_name_or_by_its_keys(tmp_path: Path, name: str, text: str) -> None:
    assert is_declaration(write(tmp_path, text, name))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cases.yaml", SUITE),
        ("cases.yaml", f"{SUITE}{AGENTS}"),
        ("cases.yaml", "schema_version: 1\ncases:\n- id: a\n  agents: [b]\n"),
        ("muster.toml", '[agents.critic]\nkind = "program"\n'),
        ("verify.json", AGENTS),
        ("broken.yaml", "\0"),
    ],
)
def test_any_other_file_does_not(tmp_path: Path, name: str, text: str) -> None:
    assert not is_declaration(write(tmp_path, text, name))


def test_agents_and_suites_are_told_apart_in_folders_too(tmp_path: Path) -> None:
    agents = write(tmp_path, AGENTS, "a/verify.yaml")
    write(tmp_path, AGENTS, "a/.hidden/verify.yaml")
    other = write(tmp_path, AGENTS, "b/checks.yaml")
    suite = write(tmp_path, SUITE, "c/cases.yaml")
    assert sorted_out([tmp_path]) == ([agents], [suite])
    assert sorted_out([tmp_path / "a", agents, other, suite]) == ([agents, other], [suite])


def test_a_folder_with_neither_and_a_path_that_is_missing_are_not_found(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.yaml"):
        with pytest.raises(NotFound):
            sorted_out([path])
    with pytest.raises(BadFile, match="the name of a suite must end in"):
        sorted_out([write(tmp_path, "", "a.txt")])
