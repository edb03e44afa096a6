"""A pytest that could not collect its tests: the cause is told where people look, and nothing passes."""

import sys

import pytest

from .verify_home import VerifyHome, home

__all__ = ["home"]

CAUSE = "ModuleNotFoundError: No module named 'nothere_mod'"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "{files}"]
WARNED = "import sys, pytest; print('DeprecationWarning: old', file=sys.stderr); sys.exit(pytest.main(sys.argv[1:]))"


@pytest.mark.parametrize("command", [PYTEST, [sys.executable, "-c", WARNED, "-q", "{files}"]], ids=["plain", "warned"])
def test_the_cause_of_a_collection_error_is_told(home: VerifyHome, command: list[str]) -> None:
    home.declare({"name": "tests", "kind": "command", "command": command, "parser": "pytest"})
    home.repository.write("t/test_a.py", "import nothere_mod\n\n\ndef test_a():\n    pass\n")
    home.repository.write("t/test_b.py", "def test_b():\n    pass\n")
    found = home.verify("t", "--report", "markdown=../report.md")
    assert found.code == 1, found
    assert CAUSE in " ".join(found.out.split())
    written = (home.folder.parent / "report.md").read_text()
    assert CAUSE in written
    assert ("! no report" in found.out, "💥 no report" in written) == (True, True)


def test_a_warning_in_the_log_does_not_hide_what_a_checker_printed(home: VerifyHome) -> None:
    # The message names the command too, so what is looked for does not stand in it as a whole.
    script = "import sys; print('cannot find', 'thing X'); print('old', file=sys.stderr); sys.exit(3)"
    home.declare({"name": "types", "kind": "command", "command": [sys.executable, "-c", script], "parser": "mypy"})
    home.repository.write("t/a.py", "a = 1\n")
    found = home.verify("t", "--report", "markdown=../report.md")
    assert found.code == 1, found
    assert "cannot find thing X" in " ".join(found.out.split())
    assert "cannot find thing X" in (home.folder.parent / "report.md").read_text()
