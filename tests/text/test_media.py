"""Images and documents by their headers: what they are, how large, and how many pages at most."""

import struct
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.media import MAX_FILE_BYTES, MediaKind
from muster.text.document_tree import Unreadable
from muster.text.media_files import media_at, media_in
from tests.pictures import pdf, png

SCAN = b"\xff\xda\x00\x08" + bytes(6)
FRAME = b"\xff\xc2\x00\x11\x08\x01\x00\x02\x00\x03" + bytes(9)
THUMBNAIL = b"\xff\xe1\x00\x0a\xff\xd8\xff\xc0\xff\xd9ab"  # bytes in a segment that look like another picture
JPEG = b"\xff\xd8" + THUMBNAIL + b"\xff" + FRAME + SCAN + b"picture\xff\xd9"


def gif(screen: tuple[int, int], *frames: tuple[int, int, int, int]) -> bytes:
    shown = (b"\x21\xf9\x04" + bytes(5) + b"," + struct.pack("<4HB", *frame, 0) + b"\x02\x01a\0" for frame in frames)
    return b"GIF89a" + struct.pack("<2HB", *screen, 0x80) + bytes(2 + 6) + b"".join(shown) + b";"


def webp(*chunks: bytes) -> bytes:
    body = b"WEBP" + b"".join(kind[:4] + struct.pack("<I", len(kind) - 4) + kind[4:] for kind in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


EXTENDED = b"VP8X" + bytes(4) + b"\x7f\x02\x00\xdf\x01\x00"
LOSSY = b"VP8 " + bytes(3) + b"\x9d\x01\x2a\x80\x02\xe0\x01"
LOSSLESS = b"VP8L" + b"\x2f" + (639 | 479 << 14).to_bytes(4, "little") + b"a"
MOVING = b"ANMF" + bytes(6) + b"\x7f\x02\x00\xdf\x01\x00"
SMALL = b"VP8X" + bytes(10)
GIF = gif((640, 480), (0, 0, 640, 480))
WHOLE = [png(), JPEG, GIF, webp(EXTENDED, LOSSY), webp(LOSSLESS), pdf(2), pdf(2, packed=True)]


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (png(640, 480), (640, 480)),
        (JPEG, (512, 256)),
        (JPEG + b"what a camera writes", (512, 256)),
        (JPEG.replace(b"\x01\x00\x02\x00\x03", b"\x00\x00\x02\x00\x03"), None),  # its height stands elsewhere
        (GIF, (640, 480)),
        (gif((1, 1), (0, 0, 3_000, 20), (10, 20, 20, 4_000)), (3_000, 4_020)),  # the screen is smaller than its frames
        (gif((640, 480)), (640, 480)),
        *((webp(chunk), (640, 480)) for chunk in (EXTENDED, LOSSY, LOSSLESS)),
        *((webp(SMALL, chunk), (640, 480)) for chunk in (LOSSY, LOSSLESS, MOVING)),
        (webp(b"none" + bytes(20)), None),
    ],
)
def test_the_size_of_an_image_is_that_of_its_largest_frame(data: bytes, size: tuple[int, int] | None) -> None:
    image = media_in(data)
    assert (image.width, image.height) == (size or (None, None))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (png()[:8], "has no header"),
        (png()[:20], "has no header"),
        (png(0, 480), "has no header"),
        (png(1 << 31, 480), "has no header"),
        (png()[:-1], "is cut short"),
        (png()[:40], "is cut short"),
        (JPEG[:-1], "is cut short"),  # a thumbnail has an end as well
        (JPEG[:30], "is cut short"),
        (JPEG.replace(FRAME, b""), "has no header"),
        (b"\xff\xd8\xff", "is cut short"),
        (GIF[:-1], "is cut short"),
        (GIF[:10], "is cut short"),
        (GIF[:-4], "is cut short"),
        (webp(LOSSY)[:-1], "is cut short"),
        (b"RIFF\0\0\0\0WEBP", "is cut short"),
        (b"%PDF-1.7 garbage", "is cut short"),
        (pdf(2)[:-8], "is cut short"),
        (b"%PDF-1.7 nothing\n%%EOF", "has no page"),
    ],
)
def test_a_file_that_cannot_be_whole_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(Unreadable) as caught:
        media_in(data)
    assert words in caught.value.message
    assert f"{len(data):,} bytes" in caught.value.message


def test_what_follows_the_end_of_a_file_is_tolerated() -> None:
    for data, more in ((png(), b"x"), (GIF, b"x"), (webp(LOSSY), b"x"), (pdf(1), b" \r\n\0" * 1_000)):
        assert media_in(data + more).size == len(data + more)


@given(st.sampled_from(WHOLE), st.data())
def test_a_file_that_was_cut_or_changed_is_read_or_refused(whole: bytes, data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(whole)))
    torn = whole[:end] + data.draw(st.binary(max_size=8)) + whole[end + 4 :]
    try:
        found = media_in(torn)
    except Unreadable:
        pass
    else:
        assert min(found.width or 1, found.height or 1, found.pages or 1) > 0


@pytest.mark.parametrize(
    ("before", "repeated"),
    [
        (b"\xff\xd8", b"\xff\xe0\x00\x02"),
        (b"\xff\xd8", b"\xff"),
        (b"GIF89a" + bytes(7), b"\x21\xff\0"),
        (b"GIF89a" + bytes(7) + b"\x21\xff", b"\x01a"),
        (b"RIFF\x00\x00\x10\x00WEBP", b"VP8 " + bytes(4)),
        (b"%PDF-", b"/Kids ["),
        (b"%PDF-", b"1 0 "),
        (b"%PDF-", b"[("),
        (b"%PDF-", b"(()"),
        (b"%PDF-", b"[(a)<41>"),
        (b"%PDF-", b"/Encrypt 1"),
        (b"%PDF-", b"9 0 obj <</Type /ObjStm>> stream\n"),
        (b"%PDF-", b"9 0 obj <</Type /ObjStm /Filter /FlateDecode>> stream\n" + zlib.compress(b"")),
    ],
)
def test_a_file_of_very_many_blocks_is_read_in_time_that_grows_with_its_length(before: bytes, repeated: bytes) -> None:
    data = before + repeated * (500_000 // len(repeated))
    for end in (b"", b"endstream\n%%EOF"):
        with suppress(Unreadable):
            assert media_in(data + end).pages is None


def content(text: bytes, packing: bytes = b"/Filter /FlateDecode") -> bytes:
    stream = zlib.compress(text) if packing == b"/Filter /FlateDecode" else text
    return b"8 0 obj <<" + packing + b" /Length 9>> stream\n" + stream + b"\nendstream endobj"


@pytest.mark.parametrize(
    ("extra", "least", "most"),
    [
        (content(b"BT /F1 1 Tf " + b"(tiny \\(print\\)) Tj " * 5_000 + b"ET"), 60_000, 100_000),
        (content(b"[(ti)-20(n (y) pr)3.5(int)] TJ " * 5_000), 50_000, 100_000),
        (content(b"<0041004200430044> Tj " * 5_000), 40_000, 50_000),
        (content(b"(a) ' (b) \" " * 5_000, b""), 10_000, 30_000),
        (content(bytes(5_000), b"/Filter /LZWDecode"), 20_000, 20_100),
        (content(b"1 0 0 1 5 5 re f " * 5_000 + b"(map) Tj"), 3, 10),
        (content(b"(a) Tj " * 5_000, b"/Subtype /Image /Filter /DCTDecode"), 0, 15_000),
        (b"", 0, 0),
    ],
)
def test_the_text_of_a_document_is_bounded_by_the_strings_that_it_shows(extra: bytes, least: int, most: int) -> None:
    shown = media_in(pdf(2, extra=extra)).text
    assert shown is not None
    assert least <= shown <= most


def test_a_document_that_unpacks_to_more_than_is_read_is_refused() -> None:
    half = content(bytes(32_500_000))
    assert media_in(pdf(1, extra=half)).text == 0
    with pytest.raises(Unreadable, match="unpacks to more than 64,000,000 bytes"):
        media_in(pdf(1, extra=half * 2))


@pytest.mark.parametrize("packed", [False, True])
def test_the_pages_of_a_document_are_counted_where_they_are_packed_too(packed: bool) -> None:
    assert media_in(pdf(7, packed=packed)).pages == 7


@pytest.mark.parametrize(
    "document",
    [
        pdf(1, kids="[3 0 R 3 0 R]"),  # one page, shown twice
        pdf(1, kids="9 0 R"),  # its pages are listed elsewhere
        pdf(1, extra=b"9 0 obj <</Type /P#61ge>> endobj"),
        pdf(1, extra=b"9 0 obj <</Type /ObjStm /Filter /LZWDecode>> stream\nx\nendstream endobj"),
        pdf(1, extra=b"9 0 obj <</Type /ObjStm /Filter /FlateDecode>> stream\nx\nendstream endobj"),
    ],
)
def test_pages_that_cannot_be_counted_surely_are_not_counted(document: bytes) -> None:
    assert media_in(document).pages is None


def test_what_is_neither_an_image_nor_a_document_is_refused(tmp_path: Path) -> None:
    refused = {
        b"": "is empty",
        b"some text": "is not PNG",
        b"%PDF-1.4 trailer <</Encrypt 5 0 R>>": "encrypted",
        png() + bytes(MAX_FILE_BYTES): "at most 32,000,000",
    }
    for data, words in refused.items():
        with pytest.raises(Unreadable) as caught:
            media_in(data)
        assert words in caught.value.message
    with pytest.raises(Unreadable, match="not of the kind document"):
        media_in(png(), kind=MediaKind.DOCUMENT)
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(Unreadable, match="Is a directory"):
        media_at(tmp_path / "folder.png")


def test_a_document_has_the_name_of_its_file_and_an_image_has_none(tmp_path: Path) -> None:
    for name, data in (("a.png", png()), ("b.pdf", pdf(3))):
        (tmp_path / name).write_bytes(data)
    image, document = media_at(tmp_path / "a.png"), media_at(tmp_path / "b.pdf")
    assert (image.name, image.width, image.height) == ("", 64, 48)
    assert (document.name, document.pages) == ("b.pdf", 3)
