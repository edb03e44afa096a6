"""Results of batches: spooled, read line by line, and settled."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.batch import Batch, BatchMember, BatchState, Names, Shortfall
from muster.domain.budget import Level
from muster.domain.call import Reply
from muster.domain.entry import AttemptId, AttemptState, Failed, Replied, Settlement
from muster.domain.errors import Expired, ProviderFault, StoreFailed
from muster.domain.ids import BatchId, RunId
from muster.domain.money import Microdollars
from muster.domain.run import Driver
from muster.engine.batches.results import (
    MAX_LINE,
    UNUSED_SECONDS,
    OddLines,
    ResultReader,
    Splitter,
    Spool,
    missing,
    own_folder,
)
from muster.testing.batches import ENDPOINT, TARIFF, MemoryBatches

BATCH = Batch(
    id=BatchId("b1"),
    endpoint=ENDPOINT,
    state=BatchState.ENDED,
    requests=10,
    bytes=100,
    tariffs={"obedient": TARIFF},
    created_at=0.0,
    nonce="n",
)
NAMES = Names("n", BATCH.id)


def member(place: int, state: AttemptState = AttemptState.PARKED) -> BatchMember:
    attempt = AttemptId(RunId("r"), f"k{place}", 1, 1)
    return BatchMember(
        attempt, place, state, "obedient", Microdollars(5), (Level(id="run:r"),), 10, 10, position=100 + place
    )


def line(place: int, name: str | None = None, **said: Any) -> tuple[int, bytes]:
    """Give a line that was taken for a member's at a glance."""
    return place, json.dumps({"custom_id": name or NAMES.name(place), **said}).encode() + b"\n"


def read(
    lines: list[tuple[int, bytes]], members: list[BatchMember], wanted: tuple[int, ...] = ()
) -> tuple[list[Settlement], ResultReader, OddLines]:
    odd = OddLines()
    reading = ResultReader(MemoryBatches(), BATCH, wanted=wanted, odd=odd)
    return list(reading.page(lines, members, 7.0).settlements), reading, odd


def texts(settlements: list[Settlement]) -> list[str]:
    replies = [settled.outcome.reply for settled in settlements if isinstance(settled.outcome, Replied)]
    assert len(replies) == len(settlements)
    return [reply.text for reply in replies]


def test_members_are_settled_by_place_however_their_lines_came() -> None:
    lines = [line(2, text="c"), line(0, text="a"), line(1, text="b")]
    settlements, reading, odd = read(lines, [member(place) for place in range(4)])
    assert texts(settlements) == ["a", "b", "c"]
    assert [(settled.position, settled.attempt.key, settled.at) for settled in settlements] == [
        (100, "k0", 7.0),
        (101, "k1", 7.0),
        (102, "k2", 7.0),
    ]
    assert reading.lines == [lines[1][1], lines[2][1], lines[0][1]]
    assert (bool(odd), odd.answered) == (False, 3)


def test_the_first_line_of_a_member_counts() -> None:
    settlements, reading, odd = read([line(0, text="first"), line(0, text="second")], [member(0)])
    assert texts(settlements) == ["first"]
    assert len(reading.lines) == 1
    assert (odd.duplicates, odd.answered) == (1, 1)


def test_whose_a_line_is_says_its_name_and_not_a_glance() -> None:
    lines = [line(0, name=NAMES.name(1), text="b"), line(1, text="b again"), line(0, text="a")]
    settlements, _, odd = read(lines, [member(0), member(1)])
    keys = [settled.attempt.key for settled in settlements]
    assert sorted(zip(keys, texts(settlements), strict=True)) == [("k0", "a"), ("k1", "b")]
    assert (odd.duplicates, odd.unknown, odd.answered) == (1, 0, 2)


def test_a_strangers_line_settles_nobody_and_takes_nobodys_place() -> None:
    settlements, _, odd = read([line(0, name="a_stranger", text="whose?"), line(0, text="a")], [member(0)])
    assert texts(settlements) == ["a"]
    assert (odd.unknown, odd.names, odd.duplicates, odd.answered) == (1, ["a_stranger"], 0, 1)


def test_a_line_that_was_cut_does_not_take_the_place_of_one_that_is_whole() -> None:
    settlements, reading, odd = read([(0, b'{"custom_id":"x\n'), line(0, text="whole")], [member(0)])
    assert texts(settlements) == ["whole"]
    assert len(reading.lines) == 1
    assert (odd.unreadable, odd.duplicates, odd.answered) == (1, 0, 1)


def test_a_line_that_cannot_be_read_settles_nobody_and_is_kept() -> None:
    settlements, _, odd = read([(0, b'{"custom_id"\n'), line(1, text="b")], [member(0), member(1)])
    assert texts(settlements) == ["b"]
    assert (odd.unreadable, odd.lines) == (1, [b'{"custom_id"\n'])


def test_a_member_that_has_its_outcome_is_passed_over_and_its_answer_still_counts() -> None:
    members = [member(0, AttemptState.SUCCEEDED), member(1)]
    settlements, reading, odd = read([line(0, text="a"), line(1, text="b"), line(5, text="nobody's")], members)
    assert texts(settlements) == ["b"]
    assert len(reading.lines) == 1
    assert (bool(odd), odd.answered) == (False, 3)


def test_only_outcomes_that_somebody_waits_for_are_held() -> None:
    settlements, reading, _ = read(
        [line(0, text="a"), line(1, error="no"), line(2, text="c")],
        [member(place) for place in range(3)],
        wanted=(1, 2),
    )
    assert len(settlements) == 3
    (one, refused), (two, answered) = reading.outcomes
    assert (one, two) == (1, 2)
    assert isinstance(refused, ProviderFault)
    assert isinstance(answered, Reply)


def test_a_member_without_a_line_ends_as_its_batch_did() -> None:
    failed, error = missing(BATCH, Shortfall.EXPIRED)
    assert (type(error), failed.ended_as, failed.uncertain) == (Expired, AttemptState.EXPIRED, False)
    uncertain: Failed = missing(BATCH, Shortfall.NONE)[0]
    assert uncertain.uncertain


def filled(folder: Path, lines: dict[int, bytes]) -> Spool:
    spool = Spool(folder, places=100, page=10)
    spool.begin()
    for place, line in lines.items():
        spool.add(place, line)
    spool.finish()
    return spool


def test_lines_come_back_by_pages_of_places(tmp_path: Path) -> None:
    spool = filled(tmp_path / "spool", {25: b"c\n", 3: b"a\n", 21: b"d\n", 4: b"b\n"})
    assert list(spool.pages()) == [
        (0, 10, [(3, b"a\n"), (4, b"b\n")]),
        (20, 30, [(25, b"c\n"), (21, b"d\n")]),
    ]


def test_a_carriage_return_ends_no_line(tmp_path: Path) -> None:
    spool = filled(tmp_path / "spool", {0: b'{"a":\r1}\n', 1: b"{}\r\n"})
    assert list(spool.pages()) == [(0, 10, [(0, b'{"a":\r1}\n'), (1, b"{}\r\n")])]


@pytest.mark.parametrize("kept", [b"", b"first\n", b"first\nsec"])
def test_lines_that_are_gone_from_the_disk_are_an_error(tmp_path: Path, kept: bytes) -> None:
    spool = filled(tmp_path / "spool", {0: b"first\n", 1: b"second\n"})
    (tmp_path / "spool" / "0.jsonl").write_bytes(kept)
    with pytest.raises(StoreFailed, match="spooled results are gone"):
        list(spool.pages())


@given(st.lists(st.binary(max_size=5) | st.sampled_from([b"\n", b"\r", b"a\nb\n"])))
def test_lines_are_the_same_however_they_arrive(chunks: list[bytes]) -> None:
    splitter = Splitter()
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    *whole, rest = b"".join(chunks).split(b"\n")
    assert lines == [line + b"\n" for line in whole]
    assert splitter.rest() == rest + b"\n"


def test_a_line_that_never_ends_is_cut_where_it_cannot_be_read() -> None:
    splitter, piece = Splitter(), b"x" * (MAX_LINE // 4)
    assert splitter.feed(b'before\n{"text":"') == [b"before\n"]
    lengths = [len(splitter.feed(piece)) for _ in range(100)]
    cut, after = splitter.feed(b'"}\nafter\n')
    assert (sum(lengths), after) == (0, b"after\n")
    assert MAX_LINE < len(cut) < 2 * MAX_LINE
    assert not cut.endswith(b'"}\n')


US = Driver(host="here/there", pid=7, started="boot/11/4026531836")
OTHER = Driver(host="here/there", pid=7, started="boot/11/4026532179")
NOW = 1_800_000_000.0


def used_by(spool: Path, driver: Driver, at: float) -> Path:
    """Make the folder of a driver, last written to at this time."""
    folder = own_folder(spool, driver, lambda _: False, NOW)
    folder.mkdir(parents=True)
    (folder / "0.jsonl").write_bytes(b"{}\n")
    for path in (folder / "0.jsonl", folder):
        os.utime(path, (at, at))
    return folder


def test_a_process_with_the_same_number_in_another_namespace_has_another_folder(tmp_path: Path) -> None:
    theirs = used_by(tmp_path, OTHER, NOW - 60)
    ours = own_folder(tmp_path, US, lambda _: False, NOW)
    assert ours != theirs
    assert ours.parent == tmp_path
    assert (theirs / "0.jsonl").exists()


def test_the_folder_of_a_process_that_is_gone_is_removed(tmp_path: Path) -> None:
    theirs = used_by(tmp_path, OTHER, NOW)
    own_folder(tmp_path, US, lambda driver: driver == OTHER, NOW)
    assert not theirs.exists()


def test_a_folder_whose_process_cannot_be_looked_at_is_removed_when_it_is_old(tmp_path: Path) -> None:
    theirs = used_by(tmp_path, OTHER, NOW - UNUSED_SECONDS - 1)
    older = tmp_path / "4711-0"  # as an older version named them
    older.mkdir()
    os.utime(older, (NOW - UNUSED_SECONDS - 1,) * 2)
    ours = used_by(tmp_path, US, NOW - UNUSED_SECONDS - 1)
    own_folder(tmp_path, US, lambda _: False, NOW)
    assert [folder.name for folder in tmp_path.iterdir()] == [ours.name]
    assert not theirs.exists()
