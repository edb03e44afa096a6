"""Plain mode: the conversation as text in, the answer as text out."""

from muster.agents.program.answer import Answer
from muster.agents.transcript import transcript_of
from muster.domain.call import Request
from muster.shapes.json_search import readable


def encode(request: Request) -> bytes:
    """Write a request as text."""
    return transcript_of(request).encode("utf-8", "backslashreplace")


def decode(output: bytes) -> Answer:
    """Give an output as it is, without the end of its last line."""
    return Answer(text=readable(output).rstrip("\r\n"))
