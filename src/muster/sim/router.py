"""Finds who answers a request; an unknown path is refused in the words of the provider it belongs to."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from muster.sim.anthropic import Anthropic
from muster.sim.ask import Dialect
from muster.sim.batches import anthropic as anthropic_batches
from muster.sim.batches import openai_files
from muster.sim.batches.anthropic import AnthropicBatches
from muster.sim.batches.desk import Desk, Endpoint
from muster.sim.batches.openai import OpenAIBatches
from muster.sim.batches.openai_files import OpenAIFiles
from muster.sim.control import Control
from muster.sim.http import Handler, HttpRequest
from muster.sim.openai import OpenAI
from muster.sim.play import Play, at_once, say
from muster.sim.rehearsal import Rehearsal

ANTHROPIC: Dialect = Anthropic()
OPENAI: Dialect = OpenAI()

Named = Callable[[HttpRequest, str], Play]


class Router:
    """A table of paths, and a few patterns for paths with an id."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        anthropic = AnthropicBatches(rehearsal.office, rehearsal.options)
        batches = OpenAIBatches(rehearsal.office, rehearsal.options)
        files = OpenAIFiles(rehearsal.office, rehearsal.options)
        served = [
            *_served(Desk(ANTHROPIC, rehearsal), anthropic.endpoints()),
            *_served(Desk(OPENAI, rehearsal), batches.endpoints() + files.endpoints()),
        ]
        self._routes: Mapping[tuple[bytes, bytes], Handler] = {
            (b"POST", b"/anthropic/v1/messages"): partial(rehearsal.perform, ANTHROPIC),
            (b"POST", b"/openai/v1/chat/completions"): partial(rehearsal.perform, OPENAI),
            **{(method, path): handler for method, path, handler in served if b"{id}" not in path},
            **Control(rehearsal).routes(),
        }
        self._patterns = [(method, _pattern(path), handler) for method, path, handler in served if b"{id}" in path]
        self.roomy = {
            anthropic_batches.PATH.encode(): anthropic.most_bytes,
            openai_files.PATH.encode(): files.most_bytes,
        }

    def __call__(self, request: HttpRequest) -> Play:
        """Give the play for a request."""
        handler = self._routes.get((request.method, request.path))
        if handler is not None:
            return handler(request)
        if request.method == b"HEAD":  # some clients knock first; such an answer has no body
            return at_once(say(200, b""))
        return self._named(request) or self._unknown(request)

    def _named(self, request: HttpRequest) -> Play | None:
        for method, pattern, handler in self._patterns:
            found = pattern.fullmatch(request.path) if method == request.method else None
            if found is not None:
                return handler(request, found[1].decode("latin-1"))
        return None

    def _unknown(self, request: HttpRequest) -> Play:
        dialect = OPENAI if request.path.startswith(b"/openai") else ANTHROPIC
        return self._rehearsal.unknown(dialect, request)


def _served(desk: Desk, endpoints: tuple[Endpoint, ...]) -> Iterator[tuple[bytes, bytes, "partial[Play]"]]:
    for endpoint in endpoints:
        yield endpoint.method, endpoint.path.encode(), partial(desk.serve, endpoint)


def _pattern(path: bytes) -> re.Pattern[bytes]:
    return re.compile(re.escape(path).replace(rb"\{id\}", b"([^/]+)"))
