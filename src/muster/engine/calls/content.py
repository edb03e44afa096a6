"""The blocks of earlier answers in a request: a provider gets back only what it gave, at the place where it was."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from muster.domain.agent import Profile
from muster.domain.call import Message, Reply, Request, message_json, request_json
from muster.domain.canonical import canonical
from muster.domain.content import AnswerBlocks, UnsentBlocks


def fit_content(request: Request, profile: Profile) -> tuple[Request, UnsentBlocks | None]:
    """Leave out blocks that the agent cannot take back; with a note that says why, if there are any.

    One that does not fit leaves out all: what comes after it was said with it in view.
    """
    reason = next(_reasons(request, profile), "")
    if not reason:
        return request, None
    bare = tuple(message if message.blocks is None else replace(message, content=None) for message in request.messages)
    return replace(request, messages=bare), UnsentBlocks(agent=profile.name, reason=reason)


def with_place(reply: Reply, request: Request) -> Reply:
    """Return a reply whose blocks, if it has any, know what stood before them."""
    blocks = reply.content
    return replace(reply, content=blocks and replace(blocks, prefix=_prefix(request, request.messages)))


def _reasons(request: Request, profile: Profile) -> Iterator[str]:
    for place, message in enumerate(request.messages):
        content = message.blocks
        if content is None:
            continue
        if (content.provider, _same_model(content, profile)) != (profile.provider, True):
            yield f"it comes from {content.provider}/{content.model}"
        elif content.prefix != _prefix(request, request.messages[:place]):
            yield "what was said before it has changed"


def _same_model(content: AnswerBlocks, profile: Profile) -> bool:
    """Return whether blocks are of the model that is asked, whose answers may name it with a date."""
    return content.model == profile.model or content.model.startswith(f"{profile.model}-")


def _prefix(request: Request, messages: Iterable[Message]) -> str:
    """Return the digest of what stands before an answer: system prompt, tools and messages."""
    before = request_json(replace(request, messages=()))
    said = {"system": before.get("system", ""), "tools": before.get("tools", [])}
    return hashlib.sha256(canonical({**said, "messages": [message_json(one) for one in messages]})).hexdigest()
