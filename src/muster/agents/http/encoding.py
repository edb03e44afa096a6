"""Content codings that the standard library reads: a body is decoded as it arrives, and no more of it than is wanted.

Pure. One read from a connection, of 64 KiB, decodes to 66 MiB at most, whatever was done to compress it.
"""

import zlib

ACCEPTED = "gzip, deflate"

_GZIP, _ZLIB, _RAW = 31, 15, -15  # windows of zlib, with a header each or without
_WINDOWS = {b"gzip": _GZIP, b"x-gzip": _GZIP, b"deflate": _ZLIB}


class ContentDecoder:
    """Decodes one body; `whole` when nothing is missing at its end."""

    __slots__ = ("_begun", "_held", "_stream", "_window", "coding")

    def __init__(self, coding: bytes) -> None:
        self.coding = coding.decode()
        self._window = _WINDOWS[coding]
        self._stream = zlib.decompressobj(self._window)
        self._held = b""  # of deflate, until its kind is known
        self._begun = False

    @property
    def whole(self) -> bool:
        """Return whether the body may end here; one that never began was empty."""
        return self._stream.eof or not (self._begun or self._held)

    def decode(self, data: bytes, most: int) -> bytes:
        """Return what some bytes decode to, of which so many are enough (0: all), or raise ValueError."""
        if not self._begun:
            data = self._held + data
            if not self._begin(data):
                self._held = data
                return b""
        parts, size = [], 0
        try:
            while data and (not most or size < most):
                if self._stream.eof:
                    self._stream = self._next()
                part = self._stream.decompress(data, most - size if most else 0)
                parts.append(part)
                size += len(part)
                data = self._stream.unused_data or self._stream.unconsumed_tail
        except zlib.error as error:
            raise ValueError(str(error)) from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _begin(self, data: bytes) -> bool:
        """Learn whether what is called deflate has a header, as it should, or none, as some servers send it."""
        if self._window == _ZLIB:
            if len(data) < 2:
                return False
            if data[0] & 0x0F != 8 or (data[0] << 8 | data[1]) % 31:
                self._stream = zlib.decompressobj(_RAW)
        self._begun = True
        return True

    def _next(self) -> "zlib._Decompress":
        if self._window != _GZIP:
            raise ValueError("something follows its end")
        return zlib.decompressobj(_GZIP)  # a file of several parts, one after the other


def decoder_of(header: bytes) -> ContentDecoder | None:
    """Return the decoder for a content-encoding, None for a plain body, or raise ValueError for any other."""
    codings = [coding for word in header.lower().split(b",") if (coding := word.strip()) not in (b"", b"identity")]
    if not codings:
        return None
    if len(codings) > 1 or codings[0] not in _WINDOWS:
        raise ValueError("unknown")
    return ContentDecoder(codings[0])
