"""Messages with images and documents: their identity, their marks in bodies, and what they count at most."""

from base64 import b64encode
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.anthropic import wire as anthropic
from muster.agents.media import media_support_of
from muster.agents.openai import wire as openai
from muster.domain.call import (
    Message,
    Request,
    Role,
    ask,
    identify,
    message,
    request_of,
    with_files,
    without_data,
)
from muster.domain.errors import BadArgument
from muster.domain.media import Media, MediaKind, filled, filled_size
from muster.text import typed
from muster.text.media_files import media_in
from tests.pictures import pdf, png

IMAGE, DOCUMENT = media_in(png(640, 480)), media_in(pdf(2), "b.pdf")


def test_a_request_of_texts_alone_is_what_it_always_was() -> None:
    assert request_of(["a", "b"]) == ask("a\n\nb")
    assert message("a") == Message(role=Role.USER, text="a")
    assert identify("x", ask("a")).digest == "3dcff458be1f2206be1b656e2bb242e681bbbf65fce9990b4486ffef81410c93"


def test_the_identity_of_a_request_has_digests_and_no_bytes() -> None:
    asked = request_of(["What is this?", IMAGE, DOCUMENT])
    bare = Request(messages=without_data(asked.messages))
    assert asked.prompt == "What is this?"
    assert identify("x", asked) == identify("x", bare)
    assert IMAGE.digest in identify("x", asked).text
    assert b64encode(IMAGE.data).decode() not in identify("x", asked).text
    unread = Media(kind=IMAGE.kind, type=IMAGE.type, digest=IMAGE.digest, size=IMAGE.size)
    assert identify("x", request_of([unread])) == identify("x", request_of([IMAGE]))
    assert identify("x", request_of([media_in(png(1, 1))])) != identify("x", request_of([IMAGE]))


def test_a_message_is_stored_with_references_and_read_again() -> None:
    [stored] = without_data([message(IMAGE, "What?", DOCUMENT)])
    again = typed.Decoder(Message).decode(typed.encode(stored))
    assert again == stored
    assert again.media == (IMAGE.reference, DOCUMENT.reference)
    assert typed.encode(Message(role=Role.USER, text="a")) == (
        b'{"role":"user","text":"a","tool_calls":[],"tool_call_id":null,"content":null}'
    )


@pytest.mark.parametrize("content", [(), (1,), ("a", None)])
def test_the_content_of_a_message_is_texts_and_media_of_a_user(content: tuple[object, ...]) -> None:
    with pytest.raises(BadArgument, match="content"):
        Message(role=Role.USER, content=content)  # type: ignore[arg-type]
    with pytest.raises(BadArgument, match="content"):
        Message(role=Role.ASSISTANT, content=(IMAGE,))


@pytest.mark.parametrize("wire", [anthropic, openai])
@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_a_body_has_the_bytes_where_its_marks_are_and_nowhere_else(wire: object, text: str) -> None:
    said = f"{text}{IMAGE.mark} \x01{IMAGE.digest}\x01"  # a text that looks like a mark is a text
    asked = request_of([said, IMAGE, "and", DOCUMENT])
    body = wire.encode(asked, "m")  # type: ignore[attr-defined]
    sent = filled(body, {IMAGE.digest: IMAGE.data, DOCUMENT.digest: DOCUMENT.data})
    assert len(sent) == filled_size(body, asked.media)
    assert sent.count(b64encode(IMAGE.data)) == 1
    parts = typed.decode(sent)["messages"][0]["content"]
    assert parts[0] == {"type": "text", "text": said}
    assert len(parts) == 4


def test_the_cache_is_marked_at_the_shared_beginning_of_a_message_with_media() -> None:
    asked = Request(messages=(message("shared text", IMAGE),), cache="5m", shared=6)
    marked = typed.decode(filled(anthropic.encode(asked, "m"), {IMAGE.digest: b""}))["messages"][0]["content"]
    assert [part.get("cache_control") is not None for part in marked] == [True, False, False]
    assert [part.get("text") for part in marked] == ["shared", " text", None]
    last = typed.decode(
        filled(anthropic.encode(Request(messages=(message(IMAGE),), cache="5m"), "m"), {IMAGE.digest: b""})
    )
    assert last["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral", "ttl": "5m"}


def test_files_are_put_into_a_request_by_digest() -> None:
    bare = Request(messages=without_data([message(IMAGE)]))
    assert with_files(bare, {IMAGE.digest: IMAGE.data}).media == (IMAGE,)


MODELS = [
    ("anthropic", "claude-haiku-5-5"),
    ("openai", "gpt-5-mini"),
    ("openai", "gpt-4o-mini"),
    ("ollama", "qwen3-vl"),
]


def picture(width: int | None, height: int | None) -> Media:
    return Media(kind=MediaKind.IMAGE, type="image/png", digest="0" * 64, size=1, width=width, height=height)


@given(st.sampled_from(MODELS), st.integers(1, 20_000), st.integers(1, 20_000))
def test_the_bound_of_a_picture_covers_every_formula_of_its_provider(
    model: tuple[str, str], width: int, height: int
) -> None:
    support = media_support_of(*model)
    assert support is not None
    bound = support.tokens([picture(width, height)])
    patches = ceil(width / 32) * ceil(height / 32)
    if model[0] == "anthropic":
        assert bound >= min(4_784, ceil(width * height / 750), ceil(width / 28) * ceil(height / 28))
        assert bound >= min(4_784, ceil(width * height / 750))
    elif model[0] == "openai":
        assert bound >= ceil(min(patches, 1_536) * 2.46)
        assert bound >= 85 + 170 * tiles(width, height)
    else:
        assert bound >= min(ceil(width / 28) * ceil(height / 28), 16_384)
    if model[0] != "ollama":  # where pictures are scaled down, one whose size is unknown counts as the largest
        assert support.tokens([picture(None, None)]) >= bound


def tiles(width: int, height: int) -> int:
    fit = min(1.0, 2_048 / max(width, height))
    fit *= min(1.0, 768 / (min(width, height) * fit))
    return ceil(width * fit / 512) * ceil(height * fit / 512)


def test_a_document_counts_text_and_a_picture_for_every_page() -> None:
    support = media_support_of("anthropic", "claude-haiku-5-5")
    assert support is not None
    assert support.tokens([DOCUMENT]) == 2 * (3_000 + 4_800)
    unknown = Media(kind=MediaKind.DOCUMENT, type="application/pdf", digest="0" * 64, size=1)
    assert support.tokens([unknown]) == 600 * (3_000 + 4_800)


@pytest.mark.parametrize(
    ("provider", "model", "kinds"),
    [
        ("anthropic", "claude-opus-5-5", {"image", "document"}),
        ("anthropic", "claude-2.1", set()),
        ("anthropic", "unheard-of", set()),
        ("openai", "gpt-5", {"image", "document"}),
        ("openai", "o3-mini", set()),
        ("openai", "gpt-3.5-turbo", set()),
        ("openrouter", "anthropic/claude-sonnet-5-5", {"image"}),
        ("groq", "llama-3.3-70b", set()),
    ],
)
def test_models_are_shown_what_their_names_say_they_can_see(provider: str, model: str, kinds: set[str]) -> None:
    support = media_support_of(provider, model)
    assert (set() if support is None else {str(kind) for kind in support.kinds}) == kinds
    assert media_support_of(provider, model, ()) is None
    told = media_support_of(provider, model, ("image",))
    assert told is not None
    assert told.kinds == {MediaKind.IMAGE}


def test_too_many_or_too_large_images_are_refused_with_the_limit() -> None:
    support = media_support_of("anthropic", "claude-haiku-5-5")
    assert support is not None
    large = Media(kind=MediaKind.IMAGE, type="image/png", digest="0" * 64, size=4_000_000)
    with pytest.raises(BadArgument, match="5,242,880"):
        support.require("a", (large,))
    with pytest.raises(BadArgument, match="takes 100"):
        support.require("a", (IMAGE,) * 101)
    document = Media(kind=MediaKind.DOCUMENT, type="application/pdf", digest="0" * 64, size=15_000_000)
    with pytest.raises(BadArgument, match="of a request"):
        support.require("a", (document, document))
