"""The process in which JSON Schemas are evaluated that may take without end; started by schema_guard.

Each line of its input asks for one evaluation, each line of its output answers one. The kernel ends it when one takes
more CPU than the line allows, also in the middle of compiled code. It ends by itself, with exit code 0, when its input
ends and when it has grown large.
"""

import json
import resource
import signal
import sys
import time
from typing import Any

from muster.domain.errors import BadArgument
from muster.text.schemas.library import ENDLESS, flaw_in, schema_flaw_of

MOST_MEMORY = 1 << 30  # bytes of addresses
LARGE = 256 * 1024  # kilobytes that were once in use, after which another process is started in its place


def main() -> None:
    """Answer until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin.buffer:
        request = json.loads(line)
        before = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, request["seconds"])  # without a handler: it ends the process
        answer = _answer(request)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(json.dumps({**answer, "cpu": time.process_time() - before}) + "\n")
        sys.stdout.flush()
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > LARGE:
            return


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    schema = request["schema"].encode()
    try:
        if "value" in request:
            return {"wrong": flaw_in(request["value"], schema)}
        return {"wrong": schema_flaw_of(schema)}
    except BadArgument as error:
        return {"refused": error.message}
    except BaseException as error:
        # Of compiled code of the library, when the stack ends in the middle of it; no other name leads to its class.
        if type(error).__name__ == "PanicException":
            return {"refused": ENDLESS}
        raise
