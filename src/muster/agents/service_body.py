"""What is posted to the user's own service: a body of our own making, or a template of theirs. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from muster.agents.payload import to_json
from muster.agents.spelling import spelled, spelled_message
from muster.agents.tally import max_tokens_of
from muster.domain.call import Request
from muster.domain.canonical import Json
from muster.domain.errors import BadConfiguration

_MESSAGES = "{messages}"
_SLOT = re.compile(r"\{(prompt|system)\}")


@dataclass(frozen=True, slots=True)
class Template:
    """A body in which "{messages}" stands for the conversation, and "{prompt}" and "{system}" for texts."""

    body: Mapping[str, Json]
    has_system: bool  # without a place of its own, the system prompt opens the conversation

    def fill(self, request: Request) -> Json:
        """Give the body for a request; what is filled in is never looked at again."""
        texts = {"prompt": request.prompt, "system": request.system}
        messages = [spelled_message(message) for message in request.messages]
        if request.system and not self.has_system:
            messages.insert(0, {"role": "system", "content": request.system})

        def fill(text: str) -> Json:
            return messages if text == _MESSAGES else _SLOT.sub(lambda slot: texts[slot[1]], text)

        return _mapped(self.body, fill)


def template_of(body: Mapping[str, Json], where: str) -> Template:
    """Read a template, or raise BadConfiguration when it would ask the same whatever is asked."""
    found: set[str] = set()

    def look(text: str) -> str:
        found.update([text] if text == _MESSAGES else _SLOT.findall(text))
        return text

    _mapped(body, look)
    if not found & {_MESSAGES, "prompt"}:
        raise BadConfiguration(
            f"{where} has no place for the question, so every call would post the same",
            suggestions=('write "{prompt}" or "{messages}" where the question belongs',),
        )
    return Template(body, "system" in found)


def encode(request: Request, template: Template | None) -> bytes:
    """Write a request as the body of a POST."""
    if template is not None:
        return to_json(template.fill(request))
    return to_json(spelled(request) | {"prompt": request.prompt, "max_tokens": max_tokens_of(request)})


def _mapped(value: Json, change: Callable[[str], Json]) -> Json:
    """Give a JSON value with every text in it changed; the names of fields stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _mapped(part, change) for name, part in value.items()}
    return [_mapped(part, change) for part in value] if isinstance(value, list | tuple) else value
