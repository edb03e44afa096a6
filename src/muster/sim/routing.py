"""Finds who answers a request; an unknown path is refused in the words of the provider it belongs to."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import msgspec

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.sim.audit import audit_json
from muster.sim.batches import anthropic as anthropic_batches
from muster.sim.batches import openai_files
from muster.sim.batches.anthropic import AnthropicBatchEndpoints
from muster.sim.batches.desk import BatchRouter, Endpoint
from muster.sim.batches.openai import OpenAIBatchEndpoints
from muster.sim.batches.openai_files import OpenAIFiles
from muster.sim.files import read_faults
from muster.sim.http import Handler, HttpRequest
from muster.sim.playback import SOON, Part, Play, at_once, say
from muster.sim.protocols.anthropic import Anthropic
from muster.sim.protocols.ask import WireProtocol
from muster.sim.protocols.openai import OpenAI
from muster.sim.rehearsal import Rehearsal

ANTHROPIC: WireProtocol = Anthropic()
OPENAI: WireProtocol = OpenAI()

Named = Callable[[HttpRequest, str], Play]


class Router:
    """A table of paths, and a few patterns for paths with an id."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        anthropic = AnthropicBatchEndpoints(rehearsal.office, rehearsal.options)
        batches = OpenAIBatchEndpoints(rehearsal.office, rehearsal.options)
        files = OpenAIFiles(rehearsal.office, rehearsal.options)
        served = [
            *_served(BatchRouter(ANTHROPIC, rehearsal), anthropic.endpoints()),
            *_served(BatchRouter(OPENAI, rehearsal), batches.endpoints() + files.endpoints()),
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
        """Return the play for a request."""
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


def _served(desk: BatchRouter, endpoints: tuple[Endpoint, ...]) -> Iterator[tuple[bytes, bytes, "partial[Play]"]]:
    for endpoint in endpoints:
        yield endpoint.method, endpoint.path.encode(), partial(desk.serve, endpoint)


def _pattern(path: bytes) -> re.Pattern[bytes]:
    return re.compile(re.escape(path).replace(rb"\{id\}", b"([^/]+)"))


AUDIT = "/_sim/audit"
RESET = "/_sim/reset"
FAULTS = "/_sim/faults"


class Control:
    """Answers whoever runs the rehearsal."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal

    def routes(self) -> Mapping[tuple[bytes, bytes], Handler]:
        """Return the table of endpoints."""
        return {
            (b"GET", AUDIT.encode()): self._audit,
            (b"POST", RESET.encode()): self._reset,
            (b"PUT", FAULTS.encode()): self._faults,
        }

    def _audit(self, request: HttpRequest) -> Play:
        return Play(parts=self._audit_parts())

    def _audit_parts(self) -> Iterator[Part]:
        for _ in self._rehearsal.catch_up():
            yield SOON, b""
        yield from _json(200, audit_json(self._rehearsal.audit())).parts

    def _reset(self, request: HttpRequest) -> Play:
        self._rehearsal.reset()
        return _json(200, {"ok": True})

    def _faults(self, request: HttpRequest) -> Play:
        try:
            self._rehearsal.plan(read_faults(msgspec.json.decode(request.body)))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return _json(400, {"error": {"message": f"faults: not valid JSON: {error}"}})
        except BadArgument as error:
            return _json(400, {"error": {"message": error.message}})
        return _json(200, {"ok": True})


def _json(status: int, value: Json) -> Play:
    return at_once(say(status, msgspec.json.encode(value)))
