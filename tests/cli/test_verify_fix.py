"""`muster verify --fix`: what is proposed is changed once, and only what passes then is 0."""

import sys

import pytest

from .verify_home import VerifyHome, checker, home, reviewer

__all__ = ["home"]

# Proposes to write GOOD for BAD, and for WORSE something that is no better.
# For HIDE it proposes a mark that takes the file out of what is verified, and for EMPTY nothing at all.
CHECK = """
import json, pathlib, sys
findings = []
for name in sys.argv[1:]:
    for number, line in enumerate(pathlib.Path(name).read_text().splitlines(), 1):
        if "BAD" in line or "WORSE" in line:
            better = None if "HARD" in line else line.replace("BAD", "GOOD")
            better = "# @generated\\n" + line if "HIDE" in line else "" if "EMPTY" in line else better
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
    data = found.envelope()["data"]["fix"]
    assert (data["changed"], data["left"], data["cost_before_usd"]) == (["src/shop.py"], [], 0.0)
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


@pytest.mark.parametrize("word", ["HIDE", "EMPTY"])
def test_a_change_that_takes_a_file_out_of_sight_is_no_success(mender: VerifyHome, word: str) -> None:
    mender.repository.write("src/good.py", "a = 1\n")
    mender.repository.write("src/shop.py", f"b = BAD {word}\n")
    found = mender.verify("src", "--fix", "--json")
    assert found.code == 1
    assert found.error()["message"] == "Changed and not verified any more: src/shop.py."


def test_a_change_that_leaves_nothing_to_verify_is_told_in_one_envelope(mender: VerifyHome) -> None:
    mender.repository.write("lib/shop.py", "b = BAD EMPTY\n")
    found = mender.verify("lib", "--fix", "--json")
    assert found.code == 1
    assert found.error()["code"] == "not_passed"
    assert "leaves nothing to verify" in found.err


def test_both_verifications_share_one_budget(mender: VerifyHome) -> None:
    mender.repository.write("src/shop.py", "b = BAD\n")
    mender.declare(checker(command=[sys.executable, "-I", "-S", "agents/mend.py", "{files}"]), reviewer(wave=1))
    assert mender.verify("src/shop.py", "--fix", "--budget", "1.00").code == 0
    second, first = [run for run in mender.runs() if run["workload"] == "waves"]
    assert (first["budget_usd"], first["spent_usd"] > 0) == (1.0, True)
    assert second["budget_usd"] == pytest.approx(1.0 - first["spent_usd"], abs=1e-9)
