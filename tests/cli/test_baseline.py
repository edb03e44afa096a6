"""`muster baseline`: names for runs that others are compared with."""

from pathlib import Path

import pytest

from .suite_home import NAMES, Home, a_run


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.chdir(tmp_path)
    made = Home(tmp_path, capsys)
    made.keep(a_run("good1"), a_run("bad1", NAMES[:12]))
    return made


def test_a_name_is_set_listed_moved_and_removed(home: Home) -> None:
    assert home.muster("baseline", "list").out == ""
    assert home.muster("baseline", "set", "main", "good1").code == 0
    assert home.muster("baseline", "set", "main", "bad1-name", "--json").data() == {"name": "main", "run": "bad1"}
    (listed,) = home.muster("baseline", "list", "--json").data()
    assert (listed["name"], listed["run"], listed["run_name"]) == ("main", "bad1", "bad1-name")
    assert "main" in home.muster("baseline", "list").out
    assert home.muster("compare", "main", "bad1").code == 0
    assert home.muster("baseline", "remove", "main").code == 0
    assert home.muster("baseline", "remove", "main").code == 5


def test_a_run_with_a_name_cannot_be_deleted(home: Home) -> None:
    home.muster("baseline", "set", "main", "good1")
    found = home.muster("runs", "delete", "good1")
    assert found.code == 4
    assert "'main'" in found.err
    assert "muster baseline remove main" in found.err
    home.muster("baseline", "remove", "main")
    assert home.muster("runs", "delete", "good1").code == 0


def test_a_file_is_imported_once(home: Home) -> None:
    file = home.export(a_run("elsewhere1"), "cassette.jsonl")
    for _ in range(2):
        assert home.muster("baseline", "set", "main", str(file)).code == 0
    assert home.muster("runs", "show", "elsewhere1").code == 0


@pytest.mark.parametrize("name", ["last", "LAST", " last ", "", " ", "a\nb", "a\x1bb", "a:b", "x" * 101, "\u202eevil"])
def test_a_name_that_would_mislead_is_refused(home: Home, name: str) -> None:
    found = home.muster("baseline", "set", name, "good1", "--json")
    assert (found.code, found.error()["code"]) == (2, "bad_argument")
    assert home.muster("baseline", "list", "--json").data() == []


def test_only_a_suite_run_that_is_here_can_be_a_baseline(home: Home) -> None:
    assert home.muster("baseline", "set", "main", "nowhere").code == 5
    home.muster("ask", "sim/echo", "hello", "--name", "asked")
    assert home.muster("baseline", "set", "main", "asked").code == 2
    assert home.muster("baseline", "list", "--json").data() == []
