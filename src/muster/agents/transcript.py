"""A conversation as one text, for agents that take no more than that. Pure."""

import json

from muster.domain.call import Message, Request


def transcript_of(request: Request, *, system: bool = True) -> str:
    """Write a conversation as one text: the system prompt, a blank line, and the only message or all turns.

    With `system` false the system prompt is left out, for agents that have another place for it.
    """
    head = f"{request.system}\n\n" if system and request.system else ""
    messages = request.messages
    if len(messages) == 1:
        return head + _said(messages[0])
    return head + "\n\n".join(f"{message.role.capitalize()}: {_said(message)}" for message in messages)


def _said(message: Message) -> str:
    uses = [f"[{call.name} {json.dumps(dict(call.arguments))}]" for call in message.tool_calls]
    return "\n".join([message.text, *uses] if message.text or not uses else uses)
