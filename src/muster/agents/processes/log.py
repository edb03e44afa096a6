"""What a process writes to standard error: all of a short one, the beginning and the end of a long one."""

HEAD = 32_768
TAIL = 32_768


class Log:
    """Keeps a bounded part of what was written."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Take some bytes."""
        room = HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * TAIL:  # cut now and then, not at every byte
            self._cut()

    @property
    def text(self) -> str:
        """Give what is kept; bytes that are no text are shown as such."""
        self._cut()
        middle = f"\n[… {self._left_out} bytes …]\n" if self._left_out else ""
        if not middle:
            return _text(self._head + self._tail)
        return _text(self._head) + middle + _text(self._tail)

    def _cut(self) -> None:
        over = len(self._tail) - TAIL
        if over > 0:
            del self._tail[:over]
            self._left_out += over


def _text(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "backslashreplace")
