"""Plain mode: the conversation as text in, the answer as text out."""

import json

from muster.agents.program.answer import Answer
from muster.agents.program.extract import readable
from muster.domain.call import Message, Request, Role


def encode(request: Request) -> bytes:
    """Write a request as text: a single message as it is, several as turns with the name of who speaks."""
    messages = request.messages
    if len(messages) == 1 and messages[0].role is Role.USER:
        said = messages[0].text
    else:
        said = "\n\n".join(_turn(message) for message in messages)
    text = f"{request.system}\n\n{said}" if request.system else said
    return text.encode("utf-8", "backslashreplace")


def decode(output: bytes) -> Answer:
    """Give an output as it is, without the end of its last line."""
    return Answer(text=readable(output).rstrip("\r\n"))


def _turn(message: Message) -> str:
    uses = [f"[{call.name} {json.dumps(dict(call.arguments))}]" for call in message.tool_calls]
    return f"{message.role.capitalize()}: " + "\n".join([message.text, *uses] if message.text or not uses else uses)
