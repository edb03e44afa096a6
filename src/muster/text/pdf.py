"""Documents of strangers: how many pages and how much text they have at most, and whether they can be whole.

All that is searched is searched in time that grows with its length, and what is unpacked is bounded.
"""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

MAX_UNPACKED = 64_000_000  # bytes of the streams of a document, besides its pictures
MAX_STREAMS = 200_000  # of a document
MAX_HEADER = 4_096  # bytes of the dictionary before a stream
_STEP = 65_536  # bytes that are unpacked at once
_END, _END_WITHIN = b"%%EOF", 1_024  # bytes before the end, white space not counted

_WHITE = b"\0\t\n\x0c\r "
_PAGE = re.compile(rb"/Type\s*+/Page(?![A-Za-z])")
_KIDS = re.compile(rb"/Kids\s*+\[([^\[\]]*+)\]")
_UNREAD_KIDS = re.compile(rb"/Kids\s*+(?!\[[^\[\]]*+\])")
_REFERENCE = re.compile(rb"(?<!\d)(\d++)\s++\d++\s++R")
_ENCRYPTED = re.compile(rb"/Encrypt\s*+(?:\d++\s++\d++\s++R|<<)")
_STREAM = re.compile(rb"(?<!end)stream\r?\n")
_ESCAPED = re.compile(rb"/([^\s/<>\[\]()%#]{0,8}#[0-9A-Fa-f]{2}[^\s/<>\[\]()%]{0,24})")
_ESCAPE = re.compile(rb"#([0-9A-Fa-f]{2})")
_PICTURE = re.compile(rb"/Subtype\s*+/Image|/(?:DCT|JPX|CCITTFax|JBIG2)Decode")
_PACKING = 4  # bytes of text in one of a stream that cannot be unpacked here
_STRING = rb"\((?:[^()\\]++|\\.|\((?:[^()\\]++|\\.)*+\))*+\)"
_HEXADECIMAL = rb"<[0-9A-Fa-f\s\0]*+>"
_TEXT = re.compile(_STRING + rb"|" + _HEXADECIMAL, re.DOTALL)
# What content streams show as text: a string before Tj, ' or ", or strings between numbers in an array before TJ. Each
# begins with one character of its own, which is searched fast.
_SHOWN = tuple(
    re.compile(pattern + rb"(?![A-Za-z0-9])", re.DOTALL)
    for pattern in (
        _STRING + rb"\s*+(?:Tj|['\"])",
        _HEXADECIMAL + rb"\s*+(?:Tj|['\"])",
        rb"\[(?:" + _STRING + rb"|" + _HEXADECIMAL + rb"|[\s\0\d.+-])*+\]\s*+TJ",
    )
)
_NAMES = frozenset({b"Type", b"Page", b"Pages", b"Kids", b"ObjStm", b"Filter", b"FlateDecode"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """What the objects of a document say."""

    pages: int | None = None  # at most; None: they cannot be counted
    text: int = 0  # bytes that are shown as text
    flaw: str = ""  # why it cannot be a whole document


def document_facts(data: bytes) -> DocumentFacts:
    """Return how many pages a document has, and what it lacks.

    Pages of older versions of the same file are counted as well. A document that names a page twice is not counted, nor
    one that spells the names that matter with escapes.
    """
    if _ENCRYPTED.search(data) is not None:
        return DocumentFacts(flaw="is encrypted; save it without a password")
    if _END not in data.rstrip(_WHITE)[-_END_WITHIN:]:
        return DocumentFacts(flaw="is cut short: its end is missing")
    try:
        parts, shown = _read_streams(data)
    except _TooLargeError as error:
        return DocumentFacts(flaw=str(error))
    shown += _shown_bytes(data)
    if parts is None:
        return DocumentFacts(text=shown)
    texts = (data, *parts)
    if any(_UNREAD_KIDS.search(text) or _has_escaped_names(text) for text in texts):
        return DocumentFacts(text=shown)
    kids = [kid for text in texts for found in _KIDS.finditer(text) for kid in _REFERENCE.findall(found[1])]
    if len(set(kids)) < len(kids):
        return DocumentFacts(text=shown)
    pages = max(len(kids), sum(len(_PAGE.findall(text)) for text in texts))
    return DocumentFacts(pages=pages, text=shown) if pages else DocumentFacts(flaw="has no page")


def _has_escaped_names(text: bytes) -> bool:
    return any(_unescaped(found[1]) in _NAMES for found in _ESCAPED.finditer(text))


def _unescaped(name: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), name)


class _TooLargeError(Exception):
    """A document with more in it than is read."""


def _read_streams(data: bytes) -> tuple[list[bytes] | None, int]:
    """Return what the object streams hold, where newer files have their pages, and how much text all others show.

    Object streams that cannot be read are None. Raises _TooLargeError for more than is unpacked.
    """
    parts: list[bytes] = []
    is_whole, shown, left = True, 0, MAX_UNPACKED
    for number, (header, packed) in enumerate(_streams(data)):
        if number == MAX_STREAMS:
            raise _TooLargeError(f"has more than {MAX_STREAMS:,} streams")
        holds_objects = b"/ObjStm" in header
        if not holds_objects and (b"/Filter" not in header or _PICTURE.search(header)):
            continue  # the text of plain streams is found in the file
        part = _unpacked(header, packed, left)
        left -= len(part or b"")
        if holds_objects and part is not None:
            parts.append(part)
        is_whole = is_whole and not (holds_objects and part is None)
        shown += len(packed) * _PACKING if part is None else _shown_bytes(part)
    return parts if is_whole else None, shown


def _shown_bytes(content: bytes) -> int:
    """Return the bytes of all strings that are shown as text: at least one for each letter."""
    shown = (found[0] for pattern in _SHOWN for found in pattern.finditer(content))
    strings = (string for part in shown for string in _TEXT.findall(part))
    return sum(len(string) // 2 if string.startswith(b"<") else len(string) for string in strings)


def _streams(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Yield the streams of a document, each with the dictionary before it."""
    view = memoryview(data)
    begin, end = 0, -1
    for found in _STREAM.finditer(data):
        header = data[max(begin, found.start() - MAX_HEADER) : found.start()].rpartition(b"obj")[2]
        begin = found.end()
        if end < begin:  # each end is looked for once, however many streams seem to have it
            end = data.find(b"endstream", begin)
            end = len(data) if end < 0 else end
        yield header, view[begin:end]


def _unpacked(header: bytes, packed: memoryview, most: int) -> bytes | None:
    """Return what a stream holds, None where that cannot be read; raises _TooLargeError for more than it may be."""
    if b"/Filter" not in header:
        return _bounded(bytes(packed[: most + 1]), most)
    if b"/FlateDecode" not in header or header.count(b"Decode") > 1 or b"/Predictor" in header:
        return None
    unpacking = zlib.decompressobj()
    parts: list[bytes] = []
    size = 0
    try:
        for start in range(0, len(packed), _STEP):  # in steps: what stands behind its end is copied
            parts.append(_bounded(unpacking.decompress(packed[start : start + _STEP], most - size + 1), most - size))
            size += len(parts[-1])
            if unpacking.eof:
                return b"".join(parts)
    except zlib.error:
        return None
    return None


def _bounded(part: bytes, most: int) -> bytes:
    if len(part) > most:
        raise _TooLargeError(f"unpacks to more than {MAX_UNPACKED:,} bytes besides its pictures")
    return part
