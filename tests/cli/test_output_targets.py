"""What a command is asked to write never takes the place of the store, of an input, or of what people wrote."""

from pathlib import Path

import pytest

from .verify_home import VerifyHome, home

__all__ = ["home"]

SUITE = """
schema_version: 1
skill_or_agent: greeter
cases:
  - id: greeter/one
    input: {messages: [{role: user, content: hello}]}
    expected: {output: [{kind: contains, value: hello}]}
"""
KEY = ("--key", "evidence.key")


def _ready(home: VerifyHome) -> None:
    for name, text in {"s/cases.yaml": SUITE, "notes.md": "mine\n", "src/a.py": "a = 1\n"}.items():
        home.repository.write(name, text)
    assert home.muster("run", "s", "--agent", "sim/echo", "--name", "first").code == 0
    assert home.muster("runs", "export", "first", "-o", "run.json").code == 0
    assert home.muster("evidence", "keygen", "-o", "evidence.key").code == 0


def _content(folder: Path) -> dict[Path, bytes]:
    """Return every file a person or the store holds, apart from what SQLite keeps beside the database."""
    files = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {path: path.read_bytes() for path in files if not path.name.endswith(("-wal", "-shm"))}


@pytest.mark.parametrize(
    "words",
    [
        ("report", "first", "--format", "html", "-o", ".muster/muster.db"),
        ("report", "first", "--format", "html", "-o", ".muster/muster.db-wal"),
        ("report", "first", "--format", "html", "-o", ".muster/new/report.html"),
        ("report", "first", "--format", "html", "-o", "s/../.muster/report.html"),
        ("report", "first", "--format", "html", "-o", "notes.md"),
        ("report", "run.json", "--format", "json", "-o", "run.json"),
        ("runs", "export", "first", "-o", ".muster/muster.db"),
        ("runs", "export", "first", "-o", "s/cases.yaml"),
        ("runs", "export", "first", "-o", "muster.toml"),
        ("evidence", "export", "first", *KEY, "-o", "s/cases.yaml"),
        ("evidence", "export", "first", *KEY, "-o", "evidence.key"),
        ("evidence", "export", "first", *KEY, "-o", ".muster/e.tar"),
        ("run", "s", "--agent", "sim/echo", "--report", "html=s/cases.yaml"),
        ("run", "s", "--agent", "sim/echo", "--report", "html=.muster/muster.db-shm"),
        ("run", "s", "--agent", "sim/echo", "--reuse", "run.json", "--report", "json=run.json"),
        ("verify", "src", "--report", "json=src/a.py"),
        ("verify", "src", "--report", "markdown=verify.yaml"),
    ],
    ids=" ".join,
)
def test_a_target_that_is_the_stores_or_an_input_is_refused(home: VerifyHome, words: tuple[str, ...]) -> None:
    _ready(home)
    before, runs = _content(home.folder), home.runs()
    refused = home.muster(*words)
    assert refused.code == 2, refused
    assert _content(home.folder) == before
    assert home.runs() == runs


def test_the_store_that_a_run_is_yet_to_make_is_not_where_its_report_goes(home: VerifyHome) -> None:
    home.repository.write("s/cases.yaml", SUITE)
    elsewhere = ("--home", "other")
    assert home.muster(*elsewhere, "run", "s", "--agent", "sim/echo", "--report", "html=other/muster.db").code == 2
    assert not (home.folder / "other").exists()


def test_an_earlier_report_or_export_of_that_name_is_replaced(home: VerifyHome) -> None:
    _ready(home)
    for format_, file in (("html", "r.html"), ("json", "r.json"), ("markdown", "r.md"), ("junit", "r.xml")):
        home.repository.write(file, "earlier")
        assert home.muster("report", "first", "--format", format_, "-o", file).code == 0
        assert (home.folder / file).read_text() != "earlier"
    home.repository.write("e.jsonl.gz", "earlier")
    assert home.muster("runs", "export", "first", "-o", "e.jsonl.gz").code == 0
