"""A request as the one text that Claude Code is given. Pure."""

from muster.agents.transcript import transcript_of
from muster.agents.volatile import session_of
from muster.domain.call import Request


def prompt_of(request: Request) -> str:
    """Give what is said to it: all of it, or the last of it when a session holds the rest."""
    if session_of(request) is None:
        return transcript_of(request, system=False)
    return request.prompt or "".join(message.text for message in request.messages[-1:])
