"""What stands in the evidence of a run, and what does not."""

import asyncio
import json
import re
import stat
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from muster.domain.case import Status
from muster.domain.errors import BadArgument, Conflict
from muster.domain.run import RunState
from muster.store.sqlite.store import open_sqlite
from muster.suites.evidence.export import Exported, export_evidence
from muster.suites.evidence.verification import verify
from muster.suites.reports.run import open_suite_run
from muster.suites.values.case import CheckKind, OutputCheck
from tests.suites.evidence.scene import CASES, FAILS, KEY, SECRET, export, story
from tests.suites.reports.suite_store import Story, a_case, a_result, an_answer, fill


def lines(archive: Path, name: str) -> list[Any]:
    with tarfile.open(archive) as tar:
        file = tar.extractfile(name)
        assert file is not None
        return [json.loads(line) for line in file.read().splitlines()]


def test_two_exports_of_one_run_are_the_same_bytes(tmp_path: Path, archive: Path) -> None:
    assert export(tmp_path, story()).path.read_bytes() == archive.read_bytes()


def test_another_key_changes_the_key_and_the_statement_only(tmp_path: Path, exported: Exported) -> None:
    other = export(tmp_path, story(), key=Ed25519PrivateKey.generate())
    before, after = (
        {member.name: member.sha256 for member in verify(path).members} for path in (exported.path, other.path)
    )
    assert {name for name in before if before[name] != after[name]} == {"public-key.pem", "statement.dsse.json"}


def test_everything_of_the_run_is_in_there(archive: Path) -> None:
    assert [case["id"] for case in lines(archive, "cases.jsonl")] == [case.id for case in CASES]
    assert [line["result"]["case"] for line in lines(archive, "verdicts.jsonl")] == [case.id for case in CASES]
    calls = {call["key"]: call for call in lines(archive, "calls.jsonl")}
    assert len(calls) == 9
    assert calls["case/s/stopped/@sim/echo/1/1"]["reply"]["text"] == "never scored"
    assert calls["case/s/errs/@sim/echo/1/1"]["error"]["message"] == "it broke"
    (run,) = lines(archive, "run.json")
    assert (run["id"], run["state"], run["spec"]["judge"]) == ("run1", "completed", "sim/judge")
    (environment,) = lines(archive, "environment.json")
    assert environment["packages"] == {"muster-ai": "0.1.0"}
    (statistics,) = lines(archive, "statistics.json")
    assert statistics["subjects"]["sim/echo"]["cases"] == len(CASES)


def test_calls_stand_in_the_order_of_the_results(archive: Path) -> None:
    keys = [call["key"] for call in lines(archive, "calls.jsonl")]
    wanted = [key for line in lines(archive, "verdicts.jsonl") for key in line["result"]["keys"]]
    assert [key for key in keys if key in wanted] == wanted
    assert keys[-1] == "case/s/stopped/@sim/echo/1/1"


def test_no_secret_is_in_there_and_its_place_is_marked_and_counted(exported: Exported) -> None:
    data = exported.path.read_bytes()
    for secret in (SECRET, "hunter2", "Xy12345678abcdefgh"):
        assert secret.encode() not in data
    assert exported.redacted == {
        "calls.jsonl": {"anthropic_key": 1, "assigned_secret": 1, "url_password": 1},
        "prompts/0001.txt": {"assigned_secret": 1},
    }
    assert lines(exported.path, "redaction.json")[0]["files"] == exported.redacted
    calls = {call["key"]: call for call in lines(exported.path, "calls.jsonl")}
    leak = calls["case/s/leaks/@sim/echo/1/1"]
    assert re.search(r"it is \[redacted:anthropic_key:\d\],", leak["reply"]["text"])
    assert leak["digest"] is None  # with it one could try short secrets
    assert calls["case/s/fails/@sim/echo/1/1"]["digest"]
    verdicts = {line["result"]["case"]: line["redacted"] for line in lines(exported.path, "verdicts.jsonl")}
    assert [case for case, redacted in verdicts.items() if redacted] == ["s/passes", "s/leaks"]


def test_the_digest_of_a_suite_that_held_a_secret_is_left_out(tmp_path: Path) -> None:
    case = a_case("s/secret", f"my key is {SECRET}")
    told = Story(cases=[case], results=[a_result(case.id)])
    assert lines(export(tmp_path, told).path, "suite.json")[0]["suites"][0]["digest"] == ""
    told = replace(told, cases=[a_case("s/secret", "no key")])
    assert lines(export(tmp_path, told, "other.tar").path, "suite.json")[0]["suites"][0]["digest"]


def test_the_private_key_is_not_in_there(exported: Exported) -> None:
    kinds = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    data = exported.path.read_bytes()
    assert KEY.private_bytes_raw() not in data
    assert KEY.private_bytes(*kinds).splitlines()[1] not in data
    assert KEY.private_bytes_raw().hex().encode() not in data


def test_an_archive_is_private_and_takes_its_place_when_it_is_whole(tmp_path: Path, exported: Exported) -> None:
    assert stat.S_IMODE(exported.path.stat().st_mode) == 0o600
    (tmp_path / "evidence.tar").write_text("older")
    path = export(tmp_path, story()).path
    assert verify(path).valid
    assert not list(tmp_path.glob("*.part"))


def test_evidence_is_written_to_files_only(tmp_path: Path) -> None:
    (tmp_path / "link.tar").symlink_to("elsewhere")
    for name in ("link.tar", "."):
        with pytest.raises(BadArgument, match="not a regular file"):
            export(tmp_path, replace(story(), run=f"run{len(name)}"), name)


async def test_there_is_no_evidence_of_a_run_that_goes_on(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "muster.db")
    run = await fill(store, story())
    suite = await open_suite_run(store, run)
    with pytest.raises(Conflict, match="is running"):
        await export_evidence(replace(suite, run=replace(run, state=RunState.RUNNING)), tmp_path / "e.tar", KEY)
    await store.maintenance.close()
    assert not (tmp_path / "e.tar").exists()


def test_half_a_surrogate_pair_and_any_other_text_survive(tmp_path: Path) -> None:
    case = a_case(
        "s/odd",
        "hi ☃",
        description="half \ud83d a pair",
        output=(OutputCheck(kind=CheckKind.CONTAINS, value="\ud83d"),),
    )
    told = Story(cases=[case], results=[a_result(case.id)], calls=[an_answer(case, "oh \ud83d\n\u2028 no")])
    path = export(tmp_path, told).path
    assert verify(path).valid
    assert lines(path, "cases.jsonl")[0]["description"] == "half \ud83d a pair"
    assert lines(path, "calls.jsonl")[0]["reply"]["text"] == "oh \ud83d\n\u2028 no"


@pytest.mark.chaos
def test_memory_does_not_grow_with_the_answers(tmp_path: Path) -> None:
    """A few are held at a time: all of them pass through a fraction of their size."""
    import tracemalloc

    cases = [a_case(f"s/{number}") for number in range(120)]
    calls = [an_answer(case, "x" * 50_000) for case in cases]
    results = [a_result(case.id, keys=(said.key,)) for case, said in zip(cases, calls, strict=True)]

    async def work() -> tuple[Path, int]:
        store = open_sqlite(tmp_path / "muster.db")
        suite = await open_suite_run(store, await fill(store, Story(cases=cases, results=results, calls=calls)))
        await export_evidence(suite, tmp_path / "warm.tar", KEY)
        tracemalloc.start()
        done = await export_evidence(suite, tmp_path / "e.tar", KEY)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        await store.maintenance.close()
        return done.path, peak

    path, peak = asyncio.run(work())
    assert path.stat().st_size > 6_000_000
    assert peak < 3_000_000


def test_the_leaflet_tells_how_to_check_it_by_hand(tmp_path: Path, archive: Path) -> None:
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    text = (tmp_path / "README.txt").read_text()
    script = "\n".join(
        line[4:] for line in text.partition('cryptography":\n')[2].splitlines() if line.startswith("    ")
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.count("ok ") == len(verify(archive).members) - 1
    (tmp_path / "cases.jsonl").write_text("{}")
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "CHANGED cases.jsonl" in done.stdout


def test_every_file_is_explained(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        file = tar.extractfile("README.txt")
        assert file is not None
        text = file.read().decode()
    for member in verify(archive).members[1:]:
        assert (member.name.split("/")[0] + ("/" if "/" in member.name else "")) in text


def test_a_run_that_failed_has_evidence_too(tmp_path: Path) -> None:
    told = Story(cases=[FAILS], results=[a_result(FAILS.id, Status.FAILED)], state=RunState.FAILED)
    assert verify(export(tmp_path, told).path).predicate["run"]["state"] == "failed"
