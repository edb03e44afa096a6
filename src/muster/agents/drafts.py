"""Bodies that were written to quote a request, kept for the moment when it is sent."""

from muster.domain.call import Request

MOST = 512  # requests
LONGEST = 16_384  # bytes: a longer one is written again rather than kept by every call that waits


class Drafts:
    """A few bodies by their requests; the oldest is forgotten first."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Request, bytes]] = {}  # the request is held, so that its number stays its own

    def keep(self, request: Request, body: bytes) -> None:
        """Keep the body of a request."""
        if len(body) > LONGEST:
            return
        self._kept[id(request)] = request, body
        if len(self._kept) > MOST:
            del self._kept[next(iter(self._kept))]

    def take(self, request: Request) -> bytes | None:
        """Give the body of a request, once; None when it is not here."""
        kept = self._kept.pop(id(request), None)
        return None if kept is None else kept[1]
