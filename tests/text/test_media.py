"""Images and documents by their headers: what they are, how large, and how many pages at most."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.media import MAX_FILE_BYTES, MediaKind
from muster.text.document_tree import Unreadable
from muster.text.media import pages_of, pixels_of, type_of
from muster.text.media_files import media_at, media_in
from tests.pictures import pdf, png

FRAME = b"\xff\xc2\x00\x11\x08\x01\x00\x02\x00\x03" + bytes(9)
JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff" + FRAME + b"\xff\xda"
GIF = b"GIF89a\x80\x02\xe0\x01" + bytes(4)
WEBP = {
    "extended": b"RIFF\x00\x00\x00\x00WEBPVP8X" + bytes(8) + b"\x7f\x02\x00\xdf\x01\x00",
    "lossy": b"RIFF\x00\x00\x00\x00WEBPVP8 " + bytes(7) + b"\x9d\x01\x2a\x80\x02\xe0\x01",
    "lossless": b"RIFF\x00\x00\x00\x00WEBPVP8L" + bytes(4) + b"\x2f" + (639 | 479 << 14).to_bytes(4, "little"),
}


@pytest.mark.parametrize(
    ("data", "type_", "size"),
    [
        (png(640, 480), "image/png", (640, 480)),
        (JPEG, "image/jpeg", (512, 256)),
        (GIF, "image/gif", (640, 480)),
        *((data, "image/webp", (640, 480)) for data in WEBP.values()),
        (png(0, 480), "image/png", None),
        (JPEG[:12], "image/jpeg", None),
        (b"RIFF\x00\x00\x00\x00WEBPnone" + bytes(20), "image/webp", None),
    ],
)
def test_the_header_of_an_image_tells_its_size(data: bytes, type_: str, size: tuple[int, int] | None) -> None:
    assert type_of(data) == type_
    assert pixels_of(data, type_) == size


@given(st.sampled_from([png(), JPEG, GIF, *WEBP.values(), pdf(2), pdf(2, packed=True)]), st.data())
def test_a_file_that_was_cut_or_changed_is_read_without_a_failure(whole: bytes, data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(whole)))
    torn = whole[:end] + data.draw(st.binary(max_size=8)) + whole[end + 4 :]
    type_ = type_of(torn)
    if type_ == "application/pdf":
        assert pages_of(torn) is None or pages_of(torn)
    elif type_ is not None:
        size = pixels_of(torn, type_)
        assert size is None or min(size) > 0


@pytest.mark.parametrize("packed", [False, True])
def test_the_pages_of_a_document_are_counted_where_they_are_packed_too(packed: bool) -> None:
    assert pages_of(pdf(7, packed=packed)) == 7


@pytest.mark.parametrize(
    "document",
    [
        pdf(1, kids="[3 0 R 3 0 R]"),  # one page, shown twice
        pdf(1, kids="9 0 R"),  # its pages are listed elsewhere
        pdf(1, extra=b"9 0 obj <</Type /P#61ge>> endobj"),
        pdf(1, extra=b"9 0 obj <</Type /ObjStm /Filter /LZWDecode>> stream\nx\nendstream endobj"),
        pdf(1, extra=b"9 0 obj <</Type /ObjStm /Filter /FlateDecode>> stream\nx\nendstream endobj"),
        b"%PDF-1.4 nothing",
    ],
)
def test_pages_that_cannot_be_counted_surely_are_not_counted(document: bytes) -> None:
    assert pages_of(document) is None


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
