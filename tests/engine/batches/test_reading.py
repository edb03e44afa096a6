"""A page of results: what its lines make of the members, in any order, and what is odd about them."""

import json
from typing import Any

from muster.domain.batch import Batch, BatchMember, BatchState, Names, Shortfall
from muster.domain.budget import Level
from muster.domain.call import Reply
from muster.domain.entry import AttemptId, AttemptState, Failed, Replied, Settlement
from muster.domain.errors import Expired, ProviderFault
from muster.domain.ids import BatchId, RunId
from muster.domain.money import Microdollars
from muster.engine.batches.results import OddLines, ResultReader, missing
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
