"""A conversation as one text, for agents that take no more than that."""

import json

from muster.domain.call import Message, Request, Role


def prompt_of(request: Request, *, system: bool = True) -> str:
    """Write a conversation as one text: the system prompt, a blank line, and the only message or all turns.

    With `system` false the system prompt is left out, for agents that have another place for it.
    """
    head = f"{request.system}\n\n" if system and request.system else ""
    messages = request.messages
    if len(messages) == 1 and messages[0].role is Role.USER:
        return head + messages[0].text
    return head + "\n\n".join(_turn(message) for message in messages)


def _turn(message: Message) -> str:
    uses = [f"[{call.name} {json.dumps(dict(call.arguments))}]" for call in message.tool_calls]
    return f"{message.role.capitalize()}: " + "\n".join([message.text, *uses] if message.text or not uses else uses)
