"""`muster verify --fix`: what is proposed is changed once, and only what passes then is 0."""

import sys

import pytest

from .verify_home import VerifyHome, checker, home, reviewer

__all__ = ["home"]

# Proposes to write GOOD for BAD, and for WORSE something that is no better.
CHECK = """
import json, pathlib, sys
findings = []
for name in sys.argv[1:]:
    for number, line in enumerate(pathlib.Path(name).read_text().splitlines(), 1):
        if "BAD" in line or "WORSE" in line:
            better = None if "HARD" in line else line.replace("BAD", "GOOD")
            findings.append({
                "file": name, "line": number, "severity": "high", "finding": "wrong", "replacement": better
            })
print(json.dumps({"findings": findings}))
"""


@pytest.fixture
def mender(home: VerifyHome) -> VerifyHome:
    home.repository.write("agents/mend.py", CHECK)
    command = [sys.executable, "-I", "-S", "agents/mend.py", "{files}"]
    home.declare(checker(command=command), reviewer())
    return home


def test_what_is_proposed_is_changed_and_verified_once_more(mender: VerifyHome) -> None:
    path = mender.repository.write("src/shop.py", "a = 1\nb = BAD\nc = BAD  # twice\n")
    found = mender.verify("src/shop.py", "--fix")
    assert found.code == 0, found.out
    assert path.read_text() == "a = 1\nb = GOOD\nc = GOOD  # twice\n"
    assert found.out.startswith("All 2 agents in 2 waves over 1 file passed.\n")
    assert "changed 1 file: src/shop.py" in found.err
    assert sorted(run["workload"] for run in mender.runs()) == ["fix", "waves", "waves"]


def test_a_change_that_does_not_help_is_no_success(mender: VerifyHome) -> None:
    path = mender.repository.write("src/shop.py", "b = BAD WORSE\n")
    found = mender.verify("src/shop.py", "--fix", "--json")
    assert found.code == 1
    assert found.envelope()["data"]["fixed"] == ["src/shop.py"]
    assert path.read_text() == "b = GOOD WORSE\n"
    assert len(mender.runs()) == 3  # it is not tried for ever


def test_where_nothing_is_proposed_nothing_is_changed(mender: VerifyHome) -> None:
    path = mender.repository.write("src/shop.py", "b = BAD HARD\n")
    found = mender.verify("src/shop.py", "--fix")
    assert found.code == 1
    assert "nothing was changed" in found.err
    assert path.read_text() == "b = BAD HARD\n"
    assert len(mender.runs()) == 1


@pytest.mark.parametrize("other", [("--staged",), ("src", "--batch", "--detach")])
def test_it_goes_only_with_files_that_are_there_and_with_somebody_who_waits(
    mender: VerifyHome, other: tuple[str, ...]
) -> None:
    found = mender.verify("--fix", *other)
    assert found.code == 2
    assert "--fix" in found.err
