"""Documents of strangers: how many pages they have at most, and whether they can be whole. Nothing is drawn.

All that is searched is searched in time that grows with its length, and what is unpacked is bounded.
"""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

MOST_UNPACKED = 64_000_000  # bytes of the object streams of a document
MAX_STREAMS = 200_000  # of a document
LONGEST_HEADER = 4_096  # bytes of the dictionary before a stream
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
_NAMES = frozenset({b"Type", b"Page", b"Pages", b"Kids", b"ObjStm", b"Filter", b"FlateDecode"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """What the objects of a document say."""

    pages: int | None = None  # at most; None: they cannot be counted
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
    parts = _object_streams(data)
    if parts is None:
        return DocumentFacts()
    texts = (data, *parts)
    if any(_UNREAD_KIDS.search(text) or _has_escaped_names(text) for text in texts):
        return DocumentFacts()
    kids = [kid for text in texts for found in _KIDS.finditer(text) for kid in _REFERENCE.findall(found[1])]
    if len(set(kids)) < len(kids):
        return DocumentFacts()
    pages = max(len(kids), sum(len(_PAGE.findall(text)) for text in texts))
    return DocumentFacts(pages=pages) if pages else DocumentFacts(flaw="has no page")


def _has_escaped_names(text: bytes) -> bool:
    return any(_unescaped(found[1]) in _NAMES for found in _ESCAPED.finditer(text))


def _unescaped(name: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), name)


def _object_streams(data: bytes) -> list[bytes] | None:
    """Return what the object streams hold, which is where newer files have their pages; None for unknown filters."""
    parts: list[bytes] = []
    left = MOST_UNPACKED
    for number, (header, packed) in enumerate(_streams(data)):
        if number == MAX_STREAMS:
            return None
        if b"/ObjStm" not in header:
            continue
        part = _unpacked(header, packed, left)
        left -= len(part or b"")
        if part is None or left <= 0:
            return None
        parts.append(part)
    return parts


def _streams(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Yield the streams of a document, each with the dictionary before it."""
    view = memoryview(data)
    begin, end = 0, -1
    for found in _STREAM.finditer(data):
        header = data[max(begin, found.start() - LONGEST_HEADER) : found.start()].rpartition(b"obj")[2]
        begin = found.end()
        if end < begin:  # each end is looked for once, however many streams seem to have it
            end = data.find(b"endstream", begin)
            end = len(data) if end < 0 else end
        yield header, view[begin:end]


def _unpacked(header: bytes, packed: memoryview, most: int) -> bytes | None:
    """Return what a stream holds; None where that cannot be read, or is more than it may be."""
    if b"/Filter" not in header:
        return bytes(packed[: most + 1])
    if b"/FlateDecode" not in header or b"/Predictor" in header:
        return None
    unpacking = zlib.decompressobj()
    parts: list[bytes] = []
    try:
        for start in range(0, len(packed), _STEP):  # in steps: what stands behind its end is copied
            parts.append(unpacking.decompress(packed[start : start + _STEP], most))
            most -= len(parts[-1])
            if unpacking.eof:
                return b"".join(parts)
            if most <= 0 or unpacking.unconsumed_tail:
                return None
    except zlib.error:
        return None
    return None
