"""What an earlier program stored, exported, signed and said: this one opens all of it and says the same.

The witness lies in `tests/data/witness`; its README tells what is in it, how it was made, and what was changed on
purpose. Only the command line is used here, and `sqlite3` to map addresses and folders in the copy.
"""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

import muster
from tests.variants import first_of

from .home import WITNESS, Home
from .kinds import KINDS
from .opening import ORIGIN, known_ids, map_address, open_witness
from .recording import RECORDED, facts, names, paid, read, record_changes, record_reading, recorder_for
from .steps import CHANGES, FINISHED, LEFT_OUT, READS

REFERENCE = WITNESS.parent.parent.parent / "docs/COMMANDS.md"
MAX_SHOWN = 60
MOVED = ("finished", "looked", "fork", "killed", "waiting", "looked-later")  # one export of each kind
# In the README: a record, a place in it (both may be globs), and why it is another now.
CHANGED = re.compile(r"^- `(?P<record>[^`]+)` `(?P<place>[^`]+)`: \S", re.MULTILINE)


def changed_on_purpose() -> list[tuple[str, str]]:
    text = (WITNESS / "README.md").read_text(encoding="utf-8").partition("## Changed on purpose")[2]
    return [(found["record"], found["place"]) for found in CHANGED.finditer(text)]


MISSING = "(this field is not there)"  # a field that is null is another thing


def differences(old: Any, new: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    """Give every place at which two JSON values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in old.keys() | new.keys():
            yield from differences(old.get(name, MISSING), new.get(name, MISSING), f"{place}.{name}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, f"{place}[{index}]")
    elif old != new or type(old) is not type(new):
        yield place, old, new


def without_looks_between(name: str, record: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a watch printed between its first and its last look: how often it looks is up to the machine."""
    if "batch-watch" not in name or not isinstance(record["out"], list):
        return record
    return record | {"out": [record["out"][0], record["out"][-1]]}


def require_equal(found: list[tuple[Path, dict[str, Any]]]) -> None:
    """Fail with the first differences between what is said and what was recorded."""
    allowed = changed_on_purpose()
    wrong = [
        f"{name} {place}\n  was {json.dumps(old)[:300]}\n  is  {json.dumps(new)[:300]}"
        for path, record in found
        for name in [path.relative_to(RECORDED).as_posix()]
        for place, old, new in differences(
            without_looks_between(name, read(path)), without_looks_between(name, record), ""
        )
        if not any(fnmatchcase(name, one) and fnmatchcase(place, where) for one, where in allowed)
    ]
    assert not wrong, f"{len(wrong)} differences\n" + "\n".join(wrong[:MAX_SHOWN])


@pytest.mark.parametrize("part", READS)
def test_every_command_that_reads_says_what_it_said(tmp_path: Path, part: str) -> None:
    found = list(record_reading(tmp_path, part))
    assert sorted(path for path, _ in found) == sorted((RECORDED / part).iterdir())
    require_equal(found)


@pytest.mark.parametrize("part", first_of(CHANGES, 2))
def test_commands_that_go_on_replay_and_make_new_runs_do_what_they_did(tmp_path: Path, part: str) -> None:
    found = list(record_changes(tmp_path, part))
    assert sorted(path for path, _ in found) == sorted((RECORDED / part).iterdir())
    require_equal(found)


def test_a_replay_asks_nobody() -> None:
    assert read(RECORDED / "replaying/paid.json") == {"calls": 0, "batches": 0, "by_digest": {}}
    assert len(list((RECORDED / "replaying").glob("*-runs-replay-*"))) == len(FINISHED)


def test_an_interrupted_run_pays_only_for_what_is_missing(tmp_path: Path) -> None:
    home = open_witness(tmp_path)
    known = show(home, "killed")
    before = {call["key"]: call for call in known["call_list"] if call["state"] == "done"}
    with home.rehearse() as rehearsal:
        first = rehearsal.audit()
        home.muster("runs", "resume", "killed", "--json")
        after = show(home, "killed")
        bought = paid(first, rehearsal.audit())["calls"]
    done = {call["key"]: call for call in after["call_list"] if call["state"] == "done"}
    assert len(before) > 1
    assert bought == len(done) - len(before)
    assert {key: call for key, call in done.items() if key in before} == before
    assert (after["state"], after["calls"]["uncertain"]) == ("completed", known["calls"]["uncertain"])


def test_a_run_that_waits_is_collected_from_the_batch_that_was_left(tmp_path: Path) -> None:
    home = open_witness(tmp_path)
    with home.rehearse() as rehearsal:
        map_address(home.database, ORIGIN, rehearsal.origin)
        first = rehearsal.audit()
        home.muster("runs", "resume", "asked-later", "--poll-interval", "0.05", "--json")
        bought = paid(first, rehearsal.audit())
    assert show(home, "asked-later")["state"] == "completed"
    assert (bought["calls"], bought["batches"]) == (0, 0)


def show(home: Home, run: str) -> dict[str, Any]:
    found: dict[str, Any] = home.muster("runs", "show", run, "--calls", "--json").data
    return found


def test_every_run_is_exported_as_it_was(tmp_path: Path) -> None:
    home = open_witness(tmp_path)
    normaliser = recorder_for(home, new_work=False).normaliser
    for name, run in runs():
        assert home.muster("runs", "export", run, "-o", "again.jsonl").code == 0
        assert normaliser.value(lines(home.folder / "again.jsonl")) == normaliser.value(lines(exported(name))), name


def test_an_export_becomes_a_run_in_another_store_and_the_same_export_again(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for name, run in runs():
        if name not in MOVED:
            continue
        done = home.muster("runs", "import", str(exported(name)), "--json")
        assert done.code == 0, done
        assert home.muster("runs", "export", run, "-o", "again.jsonl").code == 0
        assert moved(lines(tmp_path / "again.jsonl")) == moved(lines(exported(name))), name


def runs() -> list[tuple[str, str]]:
    return [(name[1:], run) for name, run in names().items() if name.startswith("@")]


def exported(name: str) -> Path:
    return WITNESS / "exports" / f"{name}.jsonl"


def moved(found: list[Any]) -> list[Any]:
    """Leave out what a store notes for itself about runs and batches that it takes in."""
    for line in found:
        if isinstance(line.get("run"), dict):
            line["run"]["submitted"] = None
        if "batch" in line:
            line["batch"] = {name: line["batch"][name] for name in ("id", "desk", "provider_id", "state", "requests")}
            line["members"] = [member[:2] for member in line["members"]]
    return found


def lines(path: Path) -> list[Any]:
    """Read an export without its seal, and without what is the store's own affair: the lease, and how many events."""
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in found:
        if isinstance(line.get("run"), dict):
            line["run"]["lease"] = line["run"]["last_seq"] = None
            line["run"]["spec"].pop("root", None)  # mapped when the witness is opened
    return found[:-1]


async def test_the_store_is_opened_by_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = open_witness(tmp_path)
    monkeypatch.chdir(home.folder)
    async with muster.open() as opened:
        assert (await opened.ask("sim/echo", "hello")).text == "hello"


def commands() -> set[str]:
    """Name every command of the reference, which is made from the program; a group may be a command itself."""
    found = re.findall(r"^## muster (.+)\n\n```\n(Usage: .*\n)", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name for name, usage in found if "COMMAND [ARGS]" not in usage}


def test_no_command_is_forgotten() -> None:
    steps = [step for parts in (READS, CHANGES) for part in parts.values() for step in part()]
    said = [" ".join(step.words) + " " for step in steps]
    assert {"runs show", "verify", "verify hook install", "ask"} <= commands()
    forgotten = {one for one in commands() if not any(words.startswith(f"{one} ") for words in said)}
    assert forgotten == set(LEFT_OUT), "add a step, or say in LEFT_OUT why there is none"


@pytest.mark.parametrize("witness", [WITNESS, KINDS])
def test_the_witness_names_nobody_s_machine(witness: Path) -> None:
    for path in witness.rglob("*"):
        if path.is_file():
            assert not re.search(rb"/(home|root|work|Users)/", path.read_bytes()), path
    assert sum(path.stat().st_size for path in witness.rglob("*") if path.is_file()) < 4_000_000


def test_the_store_is_one_whole_file_with_an_attempt_that_is_open() -> None:
    with closing(sqlite3.connect(f"file:{WITNESS / 'muster.db'}?mode=ro&immutable=1", uri=True)) as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert store.execute("SELECT state FROM runs WHERE name = 'killed'").fetchone() == ("running",)
        assert store.execute("SELECT COUNT(*) FROM attempts WHERE state = 'started'").fetchone() >= (1,)
    assert len(known_ids()) > 20
    assert facts()["made_at"] > 1_700_000_000
