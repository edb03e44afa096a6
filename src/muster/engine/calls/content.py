"""The blocks of earlier answers in a request: a provider gets back only what it gave, at the place where it was."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from muster.domain.agent import Profile
from muster.domain.call import Message, Reply, Request, message_json, request_json
from muster.domain.canonical import canonical
from muster.domain.content import AnswerBlocks, UnsentBlocks
from muster.domain.rules import CURRENT, DefaultRules

_DATE = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})")


def fit_content(
    request: Request, profile: Profile, rules: DefaultRules = CURRENT
) -> tuple[Request, UnsentBlocks | None]:
    """Leave out blocks that the agent cannot take back; with a note that says why, if there are any.

    What comes after a block was said with it in view, so it goes back only if that block does.
    """
    sent, reason = _fitting(request, profile)
    if reason:
        messages = sent if rules.keeps_fitting_blocks else tuple(map(_bare, request.messages))
        return replace(request, messages=messages), UnsentBlocks(agent=profile.name, reason=reason)
    form = _other_form(request, profile)
    if form:  # they stay part of what is asked, which is the same in every form of an API, and are not written there
        reason = f"it comes from another form of the API ({form})"
        return request, UnsentBlocks(agent=profile.name, reason=reason)
    return request, None


def with_place(reply: Reply, request: Request) -> Reply:
    """Return a reply whose blocks, if it has any, know what stood before them."""
    blocks = reply.content
    return replace(reply, content=blocks and replace(blocks, prefix=_prefix(request, request.messages)))


def _fitting(request: Request, profile: Profile) -> tuple[tuple[Message, ...], str]:
    """Return the messages with the blocks that fit, and why the first that does not is left out; empty: all fit.

    The place of a block is told by the conversation as it was sent, without what was left out of it.
    """
    sent: list[Message] = []
    first = ""
    for message in request.messages:
        reason = "" if message.blocks is None else _misfit(message.blocks, request, sent, profile)
        first = first or reason
        sent.append(_bare(message) if reason else message)
    return tuple(sent), first


def _misfit(content: AnswerBlocks, request: Request, before: Sequence[Message], profile: Profile) -> str:
    """Return why blocks do not belong after what stands before them; empty: they do."""
    if not (profile.knows_blocks(content.provider) and _same_model(content, profile)):
        return f"it comes from {content.provider.partition('/')[0]}/{content.model}"
    return "" if content.prefix == _prefix(request, before) else "what was said before it has changed"


def _bare(message: Message) -> Message:
    """Return a message without the blocks of an answer."""
    return message if message.blocks is None else replace(message, content=None)


def _other_form(request: Request, profile: Profile) -> str:
    """Return the form of the API that blocks in a request come from, if it goes through another; empty: it does not."""
    provider = profile.blocks_from(request)
    origins = (message.blocks.provider for message in request.messages if message.blocks is not None)
    return next((origin.partition("/")[2] for origin in origins if origin != provider), "")


def _same_model(content: AnswerBlocks, profile: Profile) -> bool:
    """Return whether blocks are of the model that is asked, whose answers may name it with a date."""
    if content.model == profile.model:
        return True
    return content.model.startswith(profile.model) and _DATE.fullmatch(content.model, len(profile.model)) is not None


def _prefix(request: Request, messages: Iterable[Message]) -> str:
    """Return the digest of what stands before an answer: system prompt, tools and messages."""
    before = request_json(replace(request, messages=()))
    said = {"system": before.get("system", ""), "tools": before.get("tools", [])}
    return hashlib.sha256(canonical({**said, "messages": [message_json(one) for one in messages]})).hexdigest()
