"""The frame around every command: what becomes of errors and signals. Knows no command."""

import errno
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from muster.cli.terminal.output import CommonOptions, discard, fail, fail_with
from muster.domain.canonical import JsonObject
from muster.domain.errors import Interrupted, MusterError


def answered(common: CommonOptions, work: Callable[[], int | None]) -> int:
    """Do the work; every error becomes a message and an exit code."""
    try:
        signal.signal(signal.SIGTERM, _like_an_interrupt)
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as the entry point left it
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return work() or 0
    except MusterError as error:
        return fail(common, error)
    except KeyboardInterrupt:
        return fail(common, Interrupted("interrupted"))
    except BrokenPipeError:  # whoever follows something has seen enough, before its exit code is known
        discard(sys.stdout)
        return 4
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EBADF):
            return fail_with(common, _unexpected(error), 4)
        discard(sys.stdout)
        sys.stderr.write(f"error: cannot write to standard output: {error.strerror}\n")
        return 4
    except Exception as error:
        return fail_with(common, _unexpected(error), 4)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # all is said: a signal from here on needs no words


def _unexpected(error: Exception) -> JsonObject:
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    place = f" ({Path(where.tb_frame.f_code.co_filename).name}:{where.tb_lineno})" if where else ""
    message = f"unexpected error: {type(error).__name__}: {error}{place}"
    return {
        "code": "unexpected",
        "message": message,
        "suggestions": ["please report this, with the command that you ran"],
    }


def _like_an_interrupt(number: int, frame: object) -> None:
    # Not by raising SIGINT: a shell that starts us in the background has it ignored.
    raise KeyboardInterrupt
