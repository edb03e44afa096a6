"""What every SARIF file of ours has: places that readers find."""

from pathlib import Path

import pytest

from muster.reporting.sarif import rule_name, uri


@pytest.mark.parametrize(
    ("file", "written_as"),
    [
        ("suites/a.yaml", "suites/a.yaml"),
        ("./suites/über a.yaml", "suites/%C3%BCber%20a.yaml"),
        ("/elsewhere/a b.yaml", "file:///elsewhere/a%20b.yaml"),
    ],
)
def test_places_are_relative_and_percent_encoded(file: str, written_as: str) -> None:
    assert uri(file) == written_as


def test_a_file_below_this_folder_is_named_from_here() -> None:
    assert uri(str(Path.cwd() / "suites" / "a.yaml")) == "suites/a.yaml"


@pytest.mark.parametrize(
    ("identifier", "name"), [("check-tool-sequence", "CheckToolSequence"), ("Flaky", "FlakyRule"), ("404", "Rule404")]
)
def test_a_rule_has_a_name_that_is_not_its_id(identifier: str, name: str) -> None:
    assert rule_name(identifier) == name
