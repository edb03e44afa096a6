"""`muster init`: something small to begin with."""

import pytest

from .shell import Shell


def test_a_new_suite_is_valid_and_clean(shell: Shell) -> None:
    result = shell.muster("init", "my-agent")
    assert result.code == 0
    assert result.out.splitlines()[:3] == ["my-agent/cases.yaml", "my-agent/prompt.md", "my-agent/golden/list.txt"]
    assert shell.muster("validate", "my-agent").out == "my-agent/cases.yaml: my-agent, 5 cases\n"
    assert shell.muster("lint", "my-agent").code == 0


def test_quiet_it_says_nothing(shell: Shell) -> None:
    result = shell.muster("init", "my-agent", "--quiet")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert (shell.folder / "my-agent" / "cases.yaml").is_file()


def test_nothing_is_overwritten(shell: Shell) -> None:
    (shell.folder / "taken").mkdir()
    kept = shell.write("taken/cases.yaml", "mine")
    result = shell.muster("init", "taken")
    assert (result.code, result.out) == (2, "")
    assert "taken already exists; nothing was written" in result.err
    assert [path.name for path in (shell.folder / "taken").iterdir()] == ["cases.yaml"]
    assert kept.read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("My_Agent",), "bad_argument"), (("../up",), "bad_argument"), (("a", "--kind", "b"), "usage")],
)
def test_what_cannot_be_made_is_refused_plainly(shell: Shell, arguments: tuple[str, ...], code: str) -> None:
    assert shell.muster("init", *arguments, "--json").error()["code"] == code
    assert list(shell.folder.iterdir()) == []


def test_json_tells_what_was_written(shell: Shell) -> None:
    told = shell.muster("init", "a", "--json", "--kind", "suite").data()
    assert told == {
        "folder": "a",
        "kind": "suite",
        "files": ["a/cases.yaml", "a/prompt.md", "a/golden/list.txt"],
    }


def test_the_shipped_verification_agents_are_written_to_be_changed(shell: Shell) -> None:
    told = shell.muster("init", "checks", "--kind", "verify", "--json").data()
    assert (told["folder"], told["kind"], told["files"][0]) == ("checks", "verify", "checks/verify.yaml")
    assert len(told["files"]) == 6
    assert all((shell.folder / file).stat().st_size > 0 for file in told["files"])
    assert shell.muster("validate", "checks").out == "checks/verify.yaml: 5 agents in 2 waves\n"
