"""The server's own endpoints: read the audit, start over, play other faults."""

from collections.abc import Iterator, Mapping

import msgspec

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.sim.audit import audit_json
from muster.sim.files import read_faults
from muster.sim.http import Handler, HttpRequest
from muster.sim.play import SOON, Part, Play, at_once, say
from muster.sim.rehearsal import Rehearsal

AUDIT = "/_sim/audit"
RESET = "/_sim/reset"
FAULTS = "/_sim/faults"


class Control:
    """Answers whoever runs the rehearsal."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal

    def routes(self) -> Mapping[tuple[bytes, bytes], Handler]:
        """Give the table of endpoints."""
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
