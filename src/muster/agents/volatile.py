"""What a request tells a process besides its question: the session to go on with, and the folder to work in. Pure."""

from pathlib import Path

from muster.domain.call import Request


def session_of(request: Request) -> str | None:
    """Say which session a request goes on with."""
    return _text(request, "session")


def folder_of(request: Request, usual: Path) -> Path:
    """Say where to work: where the request says, relative to where it usually is."""
    folder = _text(request, "cwd")
    return usual if folder is None else usual / folder


def _text(request: Request, name: str) -> str | None:
    value = request.volatile.get(name)
    return value if isinstance(value, str) and value else None
