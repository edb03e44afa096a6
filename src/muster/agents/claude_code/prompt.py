"""A request as the one text that Claude Code is given. Pure."""

from muster.domain.call import Message, Request, Role

_SPEAKERS = {Role.SYSTEM: "System", Role.USER: "User", Role.ASSISTANT: "Assistant", Role.TOOL: "Tool"}


def session_of(request: Request) -> str | None:
    """Say which session the request goes on with."""
    session = request.volatile.get("session")
    return session if isinstance(session, str) and session else None


def prompt_of(request: Request) -> str:
    """Give what is said to it: the only message, or the last when a session holds the others, else all as turns."""
    if session_of(request) is not None or len(request.messages) == 1:
        return request.prompt or "".join(message.text for message in request.messages[-1:])
    return "\n\n".join(_turn(message) for message in request.messages)


def _turn(message: Message) -> str:
    return f"{_SPEAKERS[message.role]}: {message.text}"
