"""How the scripted CLI agent misbehaves: it hangs, dies, leaves processes behind and makes noise."""

import os
import signal
import sys
from typing import Any, NoReturn


def hang() -> NoReturn:
    """Do nothing for ever; a signal that is not ignored still ends it."""
    while True:
        signal.pause()


def ignore_term() -> None:
    """Do not end when asked to."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def die(how: dict[str, Any]) -> NoReturn:
    """End at once, by a signal or with a code."""
    if how.get("log"):
        os.write(2, str(how["log"]).encode("utf-8", "backslashreplace"))
    if "signal" in how:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a rehearsed crash leaves no file
        os.kill(os.getpid(), how["signal"])
        hang()
    os._exit(how.get("code", 1))


def start_children(count: int, *, escape: bool, hold_output: bool) -> None:
    """Start processes that do nothing for ever, and go on when all of them are where they should be."""
    for _ in range(count):
        reader, writer = os.pipe()
        if os.fork() == 0:
            _live(reader, writer, escape=escape, hold_output=hold_output)
        os.close(writer)
        os.read(reader, 1)
        os.close(reader)


def noise(line: dict[str, Any]) -> bytes:
    """Make a line that is no event."""
    text = str(line.get("text", "noise"))
    size = int(line.get("size", 0))
    if size:
        text = (text * (size // len(text) + 1))[:size]
    return (b"\xff\xfe\xc3" if line.get("invalid") else b"") + text.encode() + b"\n"


def _live(reader: int, writer: int, *, escape: bool, hold_output: bool) -> NoReturn:
    try:
        os.close(reader)
        if escape:
            os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0,) if hold_output else (0, 1, 2):
            os.dup2(nowhere, number)
        os.write(writer, b".")
        os.close(writer)
        hang()
    except OSError as error:
        sys.stderr.write(f"{error}\n")
    finally:
        os._exit(1)
