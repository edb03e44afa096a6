"""What the user's own service answers: where its parts are found, and what they are worth. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from muster.agents.http.client import HttpResponse
from muster.agents.payload import count_of, joined, microdollars_of, reader, spelled, spelled_message, to_json
from muster.agents.service_terms import Counted, tool_calls_of
from muster.agents.usage import max_tokens_of
from muster.domain.call import Request, ToolCall
from muster.domain.canonical import Json
from muster.domain.errors import BadConfiguration
from muster.text import typed
from muster.text.json_paths import MISSING, JsonPath, Missing, compile_path

# Looked through in this order where the settings name no path.
_USUAL: Mapping[str, tuple[str, ...]] = {
    "answer": (
        "$.answer",
        "$.text",
        "$.content",
        "$.output",
        "$.response",
        "$.reply",
        "$.message.content",
        "$.message",
        "$.choices[0].message.content",
    ),
    "input_tokens": ("$.usage.input_tokens", "$.usage.prompt_tokens"),
    "output_tokens": ("$.usage.output_tokens", "$.usage.completion_tokens"),
    "tool_calls": ("$.tool_calls", "$.message.tool_calls", "$.choices[0].message.tool_calls"),
    "cost_usd": (),
}

_json = reader(object)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePaths:
    """Where the parts of an answer are found, each in the first of its places that holds one."""

    answer: tuple[JsonPath, ...]
    input_tokens: tuple[JsonPath, ...]
    output_tokens: tuple[JsonPath, ...]
    tool_calls: tuple[JsonPath, ...]
    cost_usd: tuple[JsonPath, ...]
    named: frozenset[str]  # the parts whose place the person named


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """The answer itself: as text, and as data when there is no text at its place."""

    text: str
    data: Any = None


def places_of(where: str, **named: str | None) -> ServicePaths:
    """Compile the paths that the settings name, and the usual ones for all other parts."""
    given = {part: path for part, path in named.items() if path is not None}
    paths = {part: (given[part],) if part in given else usual for part, usual in _USUAL.items()}
    compiled = {part: tuple(compile_path(path, f"{where}: {part}") for path in some) for part, some in paths.items()}
    return ServicePaths(**compiled, named=frozenset(given))


def parse(answer: HttpResponse, places: ServicePaths) -> Any | Missing:
    """Read the body: JSON, or a plain text that is the answer itself; MISSING when it is neither."""
    plain = answer.headers.get("content-type", "").lower().startswith("text/plain")
    if plain and "answer" not in places.named:
        return answer.body.decode("utf-8", "replace")
    try:
        return _json(answer.body)
    except (typed.DecodeError, UnicodeError, RecursionError):
        return MISSING


def counted_of(value: Any, places: ServicePaths) -> Counted:
    """Read what the service says that it used; several numbers at one place are added."""
    told = [_told(value, paths) for paths in (places.input_tokens, places.output_tokens, places.cost_usd)]
    sent, wrote, cost = count_of(*told[0]), count_of(*told[1]), microdollars_of(*told[2])
    wrong = any(values and number is None for values, number in zip(told, (sent, wrote, cost), strict=True))
    return Counted(input=sent, output=wrote, cost=cost, wrong=wrong)


def calls_of(value: Json, places: ServicePaths) -> tuple[ToolCall, ...] | None:
    """Read the tool calls; None when something is at the place that the person named and it is none."""
    calls = _search(value, places.tool_calls, _calls)
    if calls is not None or "tool_calls" not in places.named:
        return calls or ()
    return None if any(found not in (None, []) for found in places.tool_calls[0].all(value)) else ()


def said_of(value: Json, places: ServicePaths) -> ServiceAnswer | None:
    """Read the answer itself: any value where the person says that it is, else a text at one of the usual places."""
    if "answer" in places.named:
        return _search(value, places.answer, _anything)
    return ServiceAnswer(value) if isinstance(value, str) else _search(value, places.answer, _text)


def _search(value: Json, paths: Iterable[JsonPath], read: Callable[[list[Json]], T | None]) -> T | None:
    for path in paths:
        found = path.all(value)
        if found and (result := read(found)) is not None:
            return result
    return None


def _told(value: Any, paths: Iterable[JsonPath]) -> list[Any]:
    """Return the values at the first of the paths that holds any; null is none."""
    found = ([told for told in path.all(value) if told is not None] for path in paths)
    return next((values for values in found if values), [])


def _text(found: list[Any]) -> ServiceAnswer | None:
    return ServiceAnswer(joined(found)) if all(isinstance(text, str) for text in found) else None


def _anything(found: list[Json]) -> ServiceAnswer | None:
    """Take texts as they are, joined; anything else as JSON."""
    if (text := _text(found)) is not None:
        return text
    value = found[0] if len(found) == 1 else found
    return None if value is None else ServiceAnswer(to_json(value).decode(), value)


def _calls(found: list[Json]) -> tuple[ToolCall, ...] | None:
    """Take one list of tool calls, or calls that were found one by one."""
    return tool_calls_of(found[0] if len(found) == 1 and isinstance(found[0], list) else found)


_MESSAGES = "{messages}"
_SLOT = re.compile(r"\{(prompt|system)\}")


@dataclass(frozen=True, slots=True)
class BodyTemplate:
    """A body in which "{messages}" stands for the conversation, and "{prompt}" and "{system}" for texts."""

    body: Mapping[str, Json]
    has_system: bool  # without a place of its own, the system prompt opens the conversation

    def fill(self, request: Request) -> Json:
        """Return the body for a request; what is filled in is never looked at again."""
        texts = {"prompt": request.prompt, "system": request.system}
        messages = [spelled_message(message) for message in request.messages]
        if request.system and not self.has_system:
            messages.insert(0, {"role": "system", "content": request.system})

        def fill(text: str) -> Json:
            return messages if text == _MESSAGES else _SLOT.sub(lambda slot: texts[slot[1]], text)

        return _mapped(self.body, fill)


def template_of(body: Mapping[str, Json], where: str) -> BodyTemplate:
    """Read a template, or raise BadConfiguration when it would ask the same whatever is asked."""
    found: set[str] = set()

    def look(text: str) -> str:
        found.update([text] if text == _MESSAGES else _SLOT.findall(text))
        return text

    _mapped(body, look)
    if not found & {_MESSAGES, "prompt"}:
        raise BadConfiguration(
            f"{where} has no placeholder for the prompt, so every call would send the same",
            suggestions=('write "{prompt}" or "{messages}" where the prompt belongs',),
        )
    return BodyTemplate(body, "system" in found)


def encode(request: Request, template: BodyTemplate | None) -> bytes:
    """Write a request as the body of a POST."""
    if template is not None:
        return to_json(template.fill(request))
    return to_json(spelled(request) | {"prompt": request.prompt, "max_tokens": max_tokens_of(request)})


def _mapped(value: Json, change: Callable[[str], Json]) -> Json:
    """Return a JSON value with every text in it changed; the names of fields stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _mapped(part, change) for name, part in value.items()}
    return [_mapped(part, change) for part in value] if isinstance(value, list | tuple) else value
