"""Custom ids: no two members of any store have the same one, each leads back to its member, a stranger's to none."""

import json
import random
import re
import string

from hypothesis import given
from hypothesis import strategies as st

from muster.app import Muster
from muster.domain.batch import Names
from muster.domain.ids import BatchId, new_batch_id, new_nonce
from tests.engine.batches.house import House, ask_all, check_answered

SPELLED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
MANY = 200_000
PLACES = st.integers(min_value=0, max_value=999_999_999)
MOMENTS = st.floats(min_value=0, max_value=1e11)  # to the year 5138
SEEDS = st.integers()

NASTY = [
    "a",
    "aa",
    "a/",
    "a/a",
    "/",
    "//",
    "../../etc/passwd",
    "case/1",
    "case/10",
    "case/100",
    "case/1 ",
    "b1_0_1",
    "_",
    "-",
    "%2F",
    "0",
    "00",
    "'; DROP TABLE attempts; --",
    '{"custom_id": "x"}',
    "\\",
    "\\n",
    '"',
    "ключ",
    "鍵",
    "🔑",
    "🔑🔑",
    "e\u0301",
    "\u00e9",
    "İ",
    "i̇",
    "ß",
    "SS",
    "\u202eabc"[1:],
    "x" * 512,
    "x" * 511,
    "x" * 511 + "y",
    "🔑" * 512,
    "/" * 512,
    *(f"long/{'k' * length}" for length in range(0, 500, 25)),
]


def made(seed: int, moment: float) -> Names:
    """Make the names of a batch as a store does."""
    chance = random.Random(seed)
    return Names(new_nonce(chance), new_batch_id(moment, chance))


@given(SEEDS, MOMENTS, PLACES)
def test_a_name_is_spelled_as_providers_want_it_and_leads_back(seed: int, moment: float, place: int) -> None:
    names = made(seed, moment)
    name = names.name(place)
    assert SPELLED.fullmatch(name)
    assert names.place(name) == place


@given(SEEDS, SEEDS, MOMENTS, MOMENTS, PLACES)
def test_a_name_of_another_batch_or_store_leads_nowhere(
    seed: int, other_seed: int, moment: float, other_moment: float, place: int
) -> None:
    ours, theirs = made(seed, moment), made(other_seed, other_moment)
    if theirs.name(0) != ours.name(0):
        assert ours.place(theirs.name(place)) is None


@given(SEEDS, MOMENTS, PLACES, PLACES)
def test_two_places_never_have_the_same_name(seed: int, moment: float, one: int, other: int) -> None:
    names = made(seed, moment)
    assert (names.name(one) == names.name(other)) == (one == other)


@given(SEEDS, MOMENTS, PLACES, st.text(max_size=70))
def test_a_name_with_anything_added_or_instead_leads_nowhere(seed: int, moment: float, place: int, text: str) -> None:
    names = made(seed, moment)
    name = names.name(place)
    assert names.place(text) is None
    assert names.place(text + name) == (None if text else place)
    longer = names.place(name + text)
    assert longer is None or names.name(longer) == name + text


@given(st.sampled_from(["٣", "³", "Ⅲ", "3 ", " 3", "+3", "-3", "03", "3.0", "3_0", "３", "", "9999999999"]))
def test_what_only_looks_like_a_number_leads_nowhere(spelled: str) -> None:
    names = made(1, 1.0)
    assert names.place(names.name(3)[:-1] + spelled) is None


def test_the_names_of_two_hundred_batches_are_all_different_and_lead_back() -> None:
    chance, moment, each = random.Random(5), 1_800_000_000.0, 1000
    nonces = [new_nonce(chance) for _ in range(10)]
    seen: set[str] = set()
    for number in range(MANY // each):
        # Many batches in the same millisecond, in many stores.
        names = Names(nonces[number % 10], new_batch_id(moment, chance))
        spelled = [names.name(place) for place in range(each)]
        assert [names.place(name) for name in spelled] == list(range(each))
        assert all(map(SPELLED.fullmatch, spelled))
        seen.update(spelled)
    assert len(seen) == MANY


def test_names_are_never_longer_than_providers_allow() -> None:
    letters = string.ascii_lowercase
    names = Names("n" * 10, BatchId("b" + letters[:16]))
    assert len(names.name(999_999_999)) <= 64


async def test_replies_find_their_calls_whatever_the_keys_are(house: House, muster: Muster, agent: str) -> None:
    assert len(set(NASTY)) == len(NASTY)
    asked = {key: f"number {number} of {key}" for number, key in enumerate(NASTY)}
    run = await ask_all(muster, agent, asked)
    check_answered(run, asked)
    books = await house.check_to_the_cent(muster, run)
    assert books.texts == asked


@given(SEEDS, MOMENTS, PLACES, st.dictionaries(st.text(), st.text(), max_size=3), st.booleans(), st.booleans())
def test_a_glance_at_a_line_never_takes_it_for_another_members(
    seed: int, moment: float, place: int, before: dict[str, str], spaced: bool, stranger: bool
) -> None:
    names = made(seed, moment)
    name = f"x{names.name(place)}" if stranger else names.name(place)
    separators = (", ", ": ") if spaced else (",", ":")
    text = json.dumps({**before, "custom_id": name, "result": {"text": name}}, separators=separators)
    seen = names.glance(text.encode())
    assert seen in ((None,) if stranger or spaced else (None, place))
    if not (before or stranger or spaced):
        assert seen == place
