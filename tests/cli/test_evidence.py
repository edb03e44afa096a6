"""`muster evidence`: keys, signed archives, checked and scored again through the real command."""

import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.suites.evidence.keys import public_pem
from muster.suites.evidence.layout import PUBLIC_KEY, STATEMENT, STATISTICS, VERDICTS
from tests.suites.evidence.scene import FAILS, KEY, SECRET, story
from tests.suites.evidence.test_rescoring import changed
from tests.suites.evidence.test_verifying import contents, signed_anew

from .shell import Shell
from .suite_home import Home


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.chdir(tmp_path)
    return Home(tmp_path, capsys)


@pytest.fixture
def archive(home: Home) -> Path:
    home.keep(story())
    assert home.muster("evidence", "keygen").code == 0
    assert home.muster("evidence", "export", "last", "-o", "e.tar").code == 0
    return home.folder / "e.tar"


def test_a_key_is_made_once_for_its_owner_and_never_shown(home: Home) -> None:
    found = home.muster("evidence", "keygen", "--json")
    private = home.path / "evidence.key"
    assert found.data()["private_key"] == str(private)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    body = private.read_text().splitlines()[1]
    again = home.muster("evidence", "keygen")
    assert (again.code, private.read_text().splitlines()[1]) == (2, body)
    assert body not in found.out + found.err + again.out + again.err
    assert home.muster("evidence", "keygen", "-o", "other.key").code == 0
    assert (home.folder / "other.key.pub").exists()


def test_without_a_key_nothing_is_signed_and_the_command_for_one_is_told(home: Home) -> None:
    home.keep(story())
    found = home.muster("evidence", "export", "last", "-o", "e.tar", "--json")
    assert (found.code, found.error()["suggestions"]) == (3, ["muster evidence keygen"])
    assert home.muster("evidence", "export", "last", "-o", "e.tar", "--key", "nowhere.key").code == 5
    assert not (home.folder / "e.tar").exists()


def test_a_key_that_others_can_read_is_refused(home: Home, archive: Path) -> None:
    (home.path / "evidence.key").chmod(0o644)
    found = home.muster("evidence", "export", "last", "-o", "again.tar")
    assert (found.code, "chmod 600" in found.err) == (3, True)
    assert not (home.folder / "again.tar").exists()


def test_an_archive_is_written_checked_and_scored_again(home: Home, archive: Path) -> None:
    exported = home.muster("evidence", "export", "run1", "-o", "again.tar", "--json").data()
    assert exported["redacted"]["calls.jsonl"]["anthropic_key"] == 1
    assert (home.folder / "again.tar").read_bytes() == archive.read_bytes()
    assert SECRET.encode() not in archive.read_bytes()
    found = home.muster("evidence", "verify", "e.tar")
    assert found.code == 0
    assert "not who signed" in found.out
    known = home.muster(
        "evidence", "verify", "e.tar", "--public-key", str(home.path / "evidence.key.pub"), "--json"
    ).data()
    assert (known["valid"], known["signer_known"], known["statement"]["run"]["id"]) == (True, True, "run1")
    again = home.muster("evidence", "rescore", "e.tar", "--allow-redacted")
    assert again.code == 0
    assert "6 results came out the same" in again.out
    assert "calls that no verdict mentions: 1 (case/s/stopped/" in again.out
    assert "s/leaks" in again.out
    assert "not who signed" in again.err


def test_verify_needs_no_store(home: Home, archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = Home(tmp_path / "elsewhere", capsys)
    assert elsewhere.muster("evidence", "verify", str(archive)).code == 0
    assert elsewhere.muster("evidence", "rescore", str(archive), "--allow-redacted").code == 0
    assert not elsewhere.folder.exists()


def test_any_changed_byte_exits_1_and_the_file_is_named(home: Home, archive: Path) -> None:
    whole = archive.read_bytes()
    spoilt = home.folder / "spoilt.tar"

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
    @given(place=st.integers(0, len(whole) - 1), mask=st.integers(1, 255))
    def spoil(place: int, mask: int) -> None:
        data = bytearray(whole)
        data[place] ^= mask
        spoilt.write_bytes(data)
        assert home.muster("evidence", "verify", "spoilt.tar").code == 1
        assert home.muster("evidence", "rescore", "spoilt.tar").code == 1

    spoil()
    spoilt.write_bytes(whole.replace(b'"why":"contains', b'"why":"cantains'))
    found = home.muster("evidence", "verify", "spoilt.tar", "--json")
    assert (found.code, found.envelope()["error"]["code"]) == (1, "invalid_evidence")
    assert found.envelope()["data"].items() >= {"valid": False, "where": "verdicts.jsonl"}.items()


@pytest.mark.parametrize("content", [b"", b"just text\n", b"x" * 5000, b'{"a": 1}\n'])
def test_a_file_that_never_was_an_archive_exits_2(home: Home, content: bytes) -> None:
    (home.folder / "notes.txt").write_bytes(content)
    for command in ("verify", "rescore"):
        found = home.muster("evidence", command, "notes.txt")
        assert (found.code, "notes.txt: is not an evidence archive" in found.err) == (2, True)


def test_another_key_than_the_signers_exits_1(home: Home, archive: Path) -> None:
    home.muster("evidence", "keygen", "-o", "other.key")
    found = home.muster("evidence", "verify", "e.tar", "--public-key", "other.key.pub")
    assert (found.code, "another key" in found.err) == (1, True)
    assert home.muster("evidence", "rescore", "e.tar", "--public-key", "other.key.pub").code == 1
    assert home.muster("evidence", "verify", "e.tar", "--public-key", "other.key").code == 2  # the private one


def test_scores_that_the_answers_do_not_bear_out_exit_1_with_a_list(home: Home) -> None:
    home.keep(changed(story(), FAILS.id, score=0.3))
    home.muster("evidence", "keygen")
    home.muster("evidence", "export", "last", "-o", "e.tar")
    found = home.muster("evidence", "rescore", "e.tar")
    assert found.code == 1
    assert "1 did not" in found.out
    assert FAILS.id in found.out
    data = home.muster("evidence", "rescore", "e.tar", "--json").envelope()["data"]
    assert (data["different"], data["redacted"]) == (1, 1)


def test_a_result_that_lost_its_secret_exits_1_unless_that_is_allowed(home: Home, archive: Path) -> None:
    found = home.muster("evidence", "rescore", "e.tar")
    assert (found.code, "s/leaks" in found.out, "--allow-redacted" in found.out) == (1, True, True)
    assert "1 cannot be scored again, because secrets were removed" in found.out
    failed = home.muster("evidence", "rescore", "e.tar", "--json")
    assert (failed.code, failed.envelope()["error"]["code"]) == (1, "scored_otherwise")
    data = home.muster("evidence", "rescore", "e.tar", "--allow-redacted", "--json").data()
    assert (data["ok"], data["redacted"], data["different"]) == (True, 1, 0)


def test_figures_and_verdicts_that_are_not_right_exit_1_and_are_named(home: Home, archive: Path) -> None:
    files = contents(archive)
    figures = files[STATISTICS].replace(b'"failed":1', b'"failed":0')
    verdicts = b"".join(files[VERDICTS].splitlines(keepends=True)[:-1])
    forged = signed_anew(
        files | {STATISTICS: figures, VERDICTS: verdicts, PUBLIC_KEY: public_pem(KEY.public_key())}, KEY
    )
    (home.folder / "forged.tar").write_bytes(forged)
    assert home.muster("evidence", "verify", "forged.tar").code == 0
    found = home.muster("evidence", "rescore", "forged.tar", "--allow-redacted")
    assert found.code == 1
    assert "statistics.json/statuses/failed is 0, and the results come to 1" in found.out
    assert "1 without a verdict" in found.out
    assert "s/tooled" in found.out
    data = home.muster("evidence", "rescore", "forged.tar", "--json").envelope()["data"]
    assert (data["missing"], data["differences"][-1]["was"]) == (1, None)
    assert "statistics.json/statuses/failed" in [figure["where"] for figure in data["statistics"]]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("verify", "nowhere.tar"), 5),
        (("rescore", "nowhere.tar"), 5),
        (("verify", "."), 2),
        (("verify", "text.tar"), 2),
        (("verify", "e.tar", "--public-key", "nowhere.pub"), 5),
        (("export", "nowhere", "-o", "x.tar"), 5),
        (("export", "last"), 2),
        (("export", "last", "-o", "text.tar/x.tar"), 2),
    ],
)
def test_what_cannot_be_done_has_its_exit_code(
    home: Home, archive: Path, arguments: tuple[str, ...], code: int
) -> None:
    (home.folder / "text.tar").write_text("hello")
    found = home.muster("evidence", *arguments, "--json")
    assert (found.code, found.envelope()["ok"]) == (code, False)


def test_the_folder_of_an_archive_is_made(home: Home, archive: Path) -> None:
    made = home.folder / "not/there/yet/x.tar"
    assert home.muster("evidence", "export", "last", "-o", str(made)).code == 0
    assert made.read_bytes() == archive.read_bytes()


def test_a_run_of_something_else_has_no_evidence(home: Home, archive: Path) -> None:
    home.muster("ask", "sim/echo", "hello", "--name", "asked")
    assert home.muster("evidence", "export", "asked", "-o", "x.tar").code == 2


def test_the_real_command_runs_a_suite_and_proves_it(shell: Shell) -> None:
    """From the run to the proof, each by a process of its own."""
    shell.write(
        "suite.yaml",
        "schema_version: 1\nskill_or_agent: greeter\ncases:\n"
        "  - id: greeter/hello\n    input: {messages: [{role: user, content: hello}]}\n"
        "    expected: {output: [{kind: contains, value: hello}]}\n",
    )
    assert shell.muster("run", "suite.yaml", "--agent", "sim/echo").code == 0
    assert shell.muster("evidence", "keygen").code == 0
    assert shell.muster("evidence", "export", "last", "-o", "e.tar").code == 0
    data = (shell.folder / "e.tar").read_bytes()
    assert STATEMENT.encode() in data
    assert shell.muster("evidence", "rescore", "e.tar", "--json").data()["same"] == 1
    (shell.folder / "e.tar").write_bytes(data + b"\0")
    assert shell.muster("evidence", "verify", "e.tar").code == 1


def test_secrets_in_errors_are_taken_out_before_they_reach_a_log(home: Home) -> None:
    for manner in ((), ("--json",)):
        found = home.muster("runs", "show", SECRET, *manner)
        assert SECRET not in found.out + found.err
        assert "[redacted:anthropic_key:1]" in found.out + found.err
