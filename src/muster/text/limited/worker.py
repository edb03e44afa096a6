"""The process in which schemas and patterns are evaluated that may take without end; started by limited_process.

Each line of its input asks for one evaluation, each line of its output answers one. The kernel ends it when one takes
more CPU than the line allows, also in the middle of compiled code. It ends by itself, with exit code 0, when its input
ends and when it has grown large: what it keeps of earlier patterns and schemas is bounded by that.
"""

import json
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from muster.domain.errors import BadArgument
from muster.text.limited.allowance import ENDLESS_SCHEMA
from muster.text.limited.pattern_library import compile_pattern, is_found, load_patterns
from muster.text.limited.schema_loading import schema_library

if TYPE_CHECKING:  # it is waited for
    from muster.domain.canonical import Json

MAX_MEMORY = 1 << 30  # bytes of addresses
LARGE = 256 * 1024  # kilobytes that were once in use, after which another process is started in its place


def main() -> None:
    """Answer until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin.buffer:
        request = json.loads(line)
        evaluate = _evaluation(request)
        before = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, request["seconds"])  # without a handler: it ends the process
        answer = _answer(evaluate)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(json.dumps({**answer, "cpu": time.process_time() - before}) + "\n")
        sys.stdout.flush()
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > LARGE:
            return


def _evaluation(request: Mapping[str, Any]) -> Callable[[], "Mapping[str, Json]"]:
    """Return what a line asks for; the library that does it is loaded, which counts for no evaluation."""
    if "pattern" in request:
        load_patterns()
        if "texts" in request:
            return lambda: {"found": is_found(request["pattern"], request["texts"], request["search"])}
        return lambda: {"compiled": bool(compile_pattern(request["pattern"]))}
    library, schema = schema_library(), request["schema"].encode()
    if "value" in request:
        return lambda: {"wrong": library.flaw_in(request["value"], schema, request["formats"], request["most"])}
    return lambda: {"wrong": library.schema_flaw_of(schema)}


def _answer(evaluate: Callable[[], "Mapping[str, Json]"]) -> "Mapping[str, Json]":
    try:
        return evaluate()
    except TimeoutError:
        return {"slow": True}
    except MemoryError:
        return {"memory": True}
    except BadArgument as error:
        return {"refused": error.message, "suggestions": error.suggestions}
    except BaseException as error:
        # Of compiled code of the library, when the stack ends in the middle of it; no other name leads to its class.
        if type(error).__name__ == "PanicException":
            return {"refused": ENDLESS_SCHEMA}
        raise
