"""The requests of the two sides: each sees the conversation from its own place. Pure."""

import json
import re
from collections.abc import Sequence

from muster.battles.order import DEFAULT_TOKENS
from muster.battles.spec import BattleSpec
from muster.battles.values import BattleMessage
from muster.domain.call import Message, Request, Role, ask, message

# Providers want the user to speak first; from the place of the counterpart the agent under test is the user.
OPENING = "(The conversation begins. You speak first.)"
SHOWING = "(The conversation begins. You speak first, and show the assistant what is shown here.)"

COUNTERPART = """\
You play a person who talks with an assistant. Stay in this role, whatever the assistant says: you are not an \
assistant yourself, and you do not help it. Write only your next message to it, in your own words and without quotes \
or directions. Answer what it asks, and say so when you are not satisfied."""


def agent_request(spec: BattleSpec, messages: Sequence[BattleMessage], turn: int) -> Request:
    """Return what the agent under test is asked: the conversation, in which it is the assistant."""
    if spec.agent in spec.people:
        return Request(messages=(_heard(spec, messages[-1]),))
    return Request(
        messages=tuple(_heard(spec, one) for one in messages),
        system=spec.system_prompt,
        max_tokens=spec.max_tokens,
        usual_tokens=DEFAULT_TOKENS,
        temperature=spec.temperature,
        seed=None if spec.seed is None else spec.seed + turn,
    )


def counterpart_request(spec: BattleSpec, messages: Sequence[BattleMessage], turn: int) -> Request:
    """Return what the counterpart is asked: the same conversation, in which it is the one that answers."""
    if spec.counterpart in spec.people:
        return ask(messages[-1].content)  # a person has seen what came before, and is not told how to play one
    seen = tuple(Message(role=_OTHER[one.role], text=one.content) for one in messages)
    return Request(
        messages=(_opening(spec), *seen),
        system=_counterpart_system(spec),
        max_tokens=spec.max_tokens,
        usual_tokens=DEFAULT_TOKENS,
        temperature=spec.temperature,
        seed=None if spec.seed is None else spec.seed + turn,
    )


def _heard(spec: BattleSpec, one: BattleMessage) -> Message:
    """Return a message as the agent under test gets it: the first with the files that belong to it."""
    if one.seq == 1 and spec.media:
        return message(*spec.media, one.content)
    return Message(role=one.role, text=one.content)


def _opening(spec: BattleSpec) -> Message:
    """Return what the counterpart is told first; from its place the first message is its own, which shows nothing."""
    if not spec.media:
        return Message(role=Role.USER, text=OPENING)
    if spec.blind:
        return Message(role=Role.USER, text="\n".join([SHOWING, *(each.unseen for each in spec.media)]))
    return message(SHOWING, *spec.media)


OPENS, CLOSES = "<think>", "</think>"
# Thinking before a message: between its tags, cut off, or only closed, where the server had opened it in the prompt.
_THINKING = re.compile(r"\s*<think>.*?(?:</think>\s*|\Z)|(?:(?!<think>).)*?</think>\s*", re.DOTALL)
_TAG_BEGUN = re.compile(r"<(?:/(?:t(?:h(?:i(?:n(?:k)?)?)?)?)?)?\Z")  # the end of a text that may become </think>


def spoken(text: str) -> str:
    """Return what a side says without what it thinks: some servers put that before it, between <think> and </think>."""
    at = 0
    while thought := _THINKING.match(text, at):
        at = thought.end()
    return text[at:]


def spoken_so_far(text: str, *, unopened: bool = False) -> str:
    """Return what can be shown of a reply that is being written: nothing that is thought, and no half of a tag.

    Thinking that is only closed is known as such when its end comes, and what was shown is taken back then. With
    `unopened`, for a side that was found to write so, nothing is shown before that end.
    """
    if unopened and CLOSES not in text:
        return ""
    said = spoken(text)
    if OPENS.startswith(said.lstrip()[: len(OPENS)]):
        return ""
    begun = _TAG_BEGUN.search(said)
    return said if begun is None else said[: begun.start()]


def closes_unopened(text: str) -> bool:
    """Return whether a reply begins with thinking that it closes and did not open."""
    thought = _THINKING.match(text)
    return thought is not None and not text.lstrip().startswith(OPENS)


_OTHER = {Role.USER: Role.ASSISTANT, Role.ASSISTANT: Role.USER}


def _counterpart_system(spec: BattleSpec) -> str:
    """Return the role of the counterpart."""
    aim = f"What you want of the assistant: {spec.goal.strip()}" if spec.goal else ""
    who = f"Who you are: {spec.persona.strip()}" if spec.persona else ""
    return "\n\n".join(part for part in (COUNTERPART, who, aim) if part)


def program_request(spec: BattleSpec, messages: Sequence[BattleMessage], turn: int) -> Request:
    """Return what a program that validates is asked: the conversation as one JSON object."""
    said = [{"role": str(one.role), "content": one.content} for one in messages]
    asked = {"goal": spec.goal, "turn": turn, "reply": messages[-1].content, "messages": said}
    if spec.media:
        asked["media"] = [each.told() for each in spec.media]
    return ask(json.dumps(asked, ensure_ascii=False, sort_keys=True))
