"""The suite that somebody begins with."""

from pathlib import Path

import pytest

from muster.suites.format.lint import lint
from muster.suites.format.starter import starter
from muster.suites.format.suite import open_suite
from muster.suites.values.case import Evaluator
from tests.suites.format.suites import sound, write


@pytest.mark.parametrize("name", ["my-agent", "a", "2024", "on"])
def test_a_new_suite_is_valid_and_clean(tmp_path: Path, name: str) -> None:
    for file, text in starter(name).items():
        write(tmp_path, text, file)
    path = tmp_path / "cases.yaml"
    assert sound(path).cases == 5
    assert lint(path) == ()
    suite = open_suite(path)
    assert suite.name == name
    assert suite.prompt is not None
    assert {case.evaluator for case in suite.cases()} == {Evaluator.RULES, Evaluator.GOLDEN}
