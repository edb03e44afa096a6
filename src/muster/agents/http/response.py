"""Reads the answers of one connection, one after another: bytes in any pieces go in. Pure; knows no socket."""

from collections.abc import Iterator, Mapping

import httptools

from muster.agents.http.encoding import ACCEPTED, ContentDecoder, decoder_of
from muster.domain.errors import OutcomeUnknown, Undecodable


class ResponseHeaders(Mapping[str, str]):
    """Finds headers by name in any case; those that came more than once are joined."""

    __slots__ = ("_lines",)

    def __init__(self, lines: Mapping[bytes, bytes]) -> None:
        self._lines = lines  # names in lower case

    def __getitem__(self, name: str) -> str:
        return self._lines[name.lower().encode()].decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        return (name.decode("utf-8", "replace") for name in self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __repr__(self) -> str:
        return f"Headers({dict(self)!r})"


MAX_HEAD_BYTES = 64 * 1024
MAX_ERROR_BYTES = 1024 * 1024  # of an answer whose status says that it failed; the rest is not read
_WITHOUT_BODY = (204, 304)


class ResponseParser:
    """One answer as it arrives; `whole` at its end, `reusable` when another may follow it."""

    __slots__ = (
        "_decoder",
        "_endless",
        "_interim",
        "_lines",
        "_most_bytes",
        "_parser",
        "_parts",
        "_place",
        "_room",
        "_silent",
        "_size",
        "_until_close",
        "headed",
        "reusable",
        "status",
        "unread",
        "whole",
    )

    def __init__(self, place: str, most_bytes: int) -> None:
        self._place, self._most_bytes = place, most_bytes
        self._parser = httptools.HttpResponseParser(self)
        self.begin()

    def begin(self, *, endless: bool = False) -> None:
        """Forget the last answer and expect the next; an endless one is as long as its reader takes pieces of it."""
        self._endless = endless
        self._decoder: ContentDecoder | None = None
        self.status = self.unread = self._size = 0
        self.headed = self.whole = self.reusable = False
        self._interim = self._until_close = False
        self._lines: dict[bytes, bytes] = {}
        self._parts: list[bytes] = []
        self._room = MAX_HEAD_BYTES
        self._silent = 0  # bytes since the parser last made something of them

    @property
    def headers(self) -> ResponseHeaders:
        """Return the headers."""
        return ResponseHeaders(self._lines)

    def take(self) -> bytes:
        """Hand over what has arrived of the body since the last time."""
        parts, self._parts, self.unread = self._parts, [], 0
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def feed(self, data: memoryview | bytes) -> None:
        """Read some bytes, or raise OutcomeUnknown when they are no answer that we take."""
        self._silent += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.reusable = False
            if not self.whole:  # what follows a whole answer is nobody's, and cannot spoil it
                raise self._refusal(error) from None
        if self._silent > MAX_HEAD_BYTES and not self.whole:
            raise self._too_long_head()

    def end(self) -> None:
        """Learn that nothing follows, or raise OutcomeUnknown when the answer is not whole."""
        if self.headed and self._until_close and (self._decoder is None or self._decoder.whole):
            self.whole = True
        if not self.whole and not self.cut_short():
            raise OutcomeUnknown(f"{self._place}: the connection broke: the server closed it before a whole answer")

    def cut_short(self) -> bool:
        """End an answer whose status alone says that it failed; False when its body is needed."""
        if not self.headed or 200 <= self.status < 300:
            return False
        if not self.whole:
            self.whole, self.reusable = True, False
        return True

    # The side of httptools.

    def on_message_begin(self) -> None:
        """Refuse a second answer: only one was asked for."""
        if self.whole:
            raise ValueError("an answer that nobody asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers say nothing that anybody reads."""
        self._room -= len(name) + len(value) + 4
        if self._room < 0:
            raise self._too_long_head()
        if not self.headed:
            name, lines = name.lower(), self._lines
            lines[name] = lines[name] + b", " + value if name in lines else value

    def on_headers_complete(self) -> None:
        """Take the status and decide how the body ends."""
        self.status = self._parser.get_status_code()
        if self.status < 200:
            self._skip()
            return
        self.headed, self._silent = True, 0
        lines = self._lines
        if b"transfer-encoding" in lines or b"content-encoding" in lines:
            self._check_encodings()
        elif b"content-length" not in lines:
            self._until_close = self.status not in _WITHOUT_BODY

    def on_body(self, piece: bytes) -> None:
        """Take a piece of the body."""
        if self.whole:
            return
        self._silent = 0
        if self._decoder is not None:
            piece = self._decode(self._decoder, piece)
            if not piece:
                return
        self._parts.append(piece)
        size = len(piece)
        self.unread += size
        self._size += size
        if self._size > MAX_ERROR_BYTES and self.cut_short():
            return
        if self._size > self._most_bytes and not self._endless and not self.cut_short():
            raise self._too_long()

    def on_message_complete(self) -> None:
        """End the answer, unless it only announced the true one."""
        if self._interim:
            self._interim = False
        elif not self.whole:
            if self._decoder is not None and not self._decoder.whole and not self.cut_short():
                raise self._undecodable(self._decoder, "its end is missing")
            self.whole = True
            self.reusable = self._parser.should_keep_alive()

    def _skip(self) -> None:
        if self.status == 101:
            raise OutcomeUnknown(f"{self._place}: the server switched protocols unexpectedly")
        self._interim = True
        self._lines = {}

    def _check_encodings(self) -> None:
        framing = self._lines.get(b"transfer-encoding", b"chunked").lower()
        coding = self._lines.get(b"content-encoding", b"")
        try:
            self._decoder = decoder_of(coding)
            known = framing == b"chunked"
        except ValueError:
            known = False
        if not known:
            if self.cut_short():
                return
            shown = (coding if framing == b"chunked" else framing).decode("utf-8", "replace")
            raise Undecodable(
                f"{self._place}: answered {self.status} encoded as {shown!r}, though only {ACCEPTED} were asked for"
            )
        if b"transfer-encoding" not in self._lines and b"content-length" not in self._lines:
            self._until_close = self.status not in _WITHOUT_BODY

    def _decode(self, decoder: ContentDecoder, piece: bytes) -> bytes:
        """Decode a piece of the body; one byte more than fits is enough to know that it is too long."""
        succeeded = 200 <= self.status < 300
        most = self._most_bytes if succeeded else min(self._most_bytes, MAX_ERROR_BYTES)
        try:
            return decoder.decode(piece, 0 if self._endless and succeeded else most - self._size + 1)
        except ValueError as error:
            if self.cut_short():
                return b""
            raise self._undecodable(decoder, str(error)) from None

    def _undecodable(self, decoder: ContentDecoder, why: str) -> Undecodable:
        what = f"with a body that is not valid {decoder.coding}"
        return Undecodable(f"{self._place}: answered {self.status} {what}: {why}")

    def _too_long(self) -> OutcomeUnknown:
        words = f"{self._place}: the answer is longer than {self._most_bytes} bytes"
        if self._decoder is None:
            return OutcomeUnknown(words)
        return Undecodable(f"{words} when decoded from {self._decoder.coding}")

    def _refusal(self, error: Exception) -> OutcomeUnknown:
        reason = error.__context__
        if isinstance(reason, OutcomeUnknown):
            return reason
        return OutcomeUnknown(f"{self._place}: the connection broke: the answer is not valid HTTP/1.1: {error}")

    def _too_long_head(self) -> OutcomeUnknown:
        return OutcomeUnknown(f"{self._place}: the head of the answer is longer than {MAX_HEAD_BYTES} bytes")
