"""Taking secrets out of what is stored."""

import json

from hypothesis import given
from hypothesis import strategies as st

from muster.store.codec import PROBE, REDACTED, Codec

SECRET = "sk-live-0123456789-abcdef"


@given(
    secret=st.text(st.characters(codec="utf-8"), min_size=8, max_size=3 * PROBE),
    before=st.text(st.sampled_from('x8\\"é ')),
    after=st.text(),
)
def test_no_secret_of_any_length_is_left_in_a_text(secret: str, before: str, after: str) -> None:
    codec = Codec([secret])
    assert secret not in codec.clean(before + secret + after).replace(REDACTED, "")
    assert secret.encode() not in codec.clean_bytes((before + secret + after).encode()).replace(REDACTED.encode(), b"")


def test_what_only_begins_like_a_secret_stays() -> None:
    text = f"{SECRET[:-1]} {SECRET[:PROBE]}"
    assert Codec([SECRET]).clean(text) == text
    assert Codec([SECRET]).clean_bytes(text.encode()) == text.encode()


def test_of_two_secrets_that_begin_alike_both_are_taken_out_whole() -> None:
    codec = Codec([SECRET, SECRET + "-and-more"])
    assert codec.clean(f"{SECRET}, {SECRET}-and-more") == f"{REDACTED}, {REDACTED}"
    assert codec.clean_bytes(f"{SECRET}-and-more {SECRET}".encode()) == f"{REDACTED} {REDACTED}".encode()


def test_a_secret_is_found_as_json_spells_it() -> None:
    secret = 'pa"ss\\wörd-of-ours'
    for ascii_only in (True, False):
        line = json.dumps({"text": f"it is {secret}"}, ensure_ascii=ascii_only)
        assert json.loads(Codec([secret]).clean(line)) == {"text": f"it is {REDACTED}"}
        assert json.loads(Codec([secret]).clean_bytes(line.encode())) == {"text": f"it is {REDACTED}"}


def test_a_secret_that_is_no_text_hinders_nothing() -> None:
    codec = Codec(["\udc80-not-unicode-\udcff"])
    assert codec.clean_bytes(b"plain") == b"plain"
    assert codec.clean("\udc80-not-unicode-\udcff") == REDACTED


def test_a_secret_that_is_made_later_is_taken_out_from_then_on() -> None:
    codec = Codec([SECRET])
    assert codec.clean("made-later-0123") == "made-later-0123"
    codec.hide("made-later-0123")
    assert codec.clean(f"made-later-0123 and {SECRET}") == f"{REDACTED} and {REDACTED}"
