"""What the scripted CLI agent does without a script: the prompt names a mood, as in `MOOD:hang`; else it is ok."""

import os
import re
import resource
import signal
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from muster.sim.cli_agent.script import BadScript, Step

_LONG = 200_000

BEHAVIORS: dict[str, list[Step]] = {
    # Says the prompt.
    "ok": [{"say": "{prompt}"}, {"cost": 0.01}],
    # Thinks, and uses two tools at once, the second of which fails.
    "tools": [
        {"think": "I should look first."},
        {
            "tools": [
                {"name": "Bash", "input": {"command": "ls"}, "result": "README.md\n"},
                {"name": "Grep", "input": {"pattern": "TODO"}, "result": "no such file", "failed": True},
            ]
        },
        {"say": "There is one file."},
        {"cost": 0.02},
    ],
    # Really writes, edits and reads a file in the folder that it was started in.
    "edit": [
        {"tool": {"name": "Write", "input": {"file_path": "greeting.txt", "content": "hello\n"}}},
        {
            "tool": {
                "name": "Edit",
                "input": {"file_path": "greeting.txt", "old_string": "hello", "new_string": "hello, world"},
            }
        },
        {"tool": {"name": "Read", "input": {"file_path": "greeting.txt"}}},
        {"say": "The file is written."},
        {"cost": 0.03},
    ],
    # Asks for permission and waits for the answer.
    "permission": [
        {"ask_permission": {"name": "Bash", "input": {"command": "make install"}, "result": "installed"}},
        {"say": "It is installed."},
        {"cost": 0.01},
    ],
    # Says who it is, and nothing more.
    "hang": [{"hang": True}],
    # Begins to use a tool that never comes back.
    "stall-in-tool": [
        {"say": "I run the tests."},
        {"tool": {"name": "Bash", "input": {"command": "make test"}, "meanwhile": [{"hang": True}]}},
    ],
    # Exits with code 3 and a word about it on standard error.
    "crash": [{"crash": {"code": 3, "log": "cannot reach the model\n"}}],
    # Is killed in the middle of its last line.
    "crash-late": [
        {"say": "I am nearly done."},
        {"crash": {"signal": 9, "partial": '{"type": "result", "subtype": "succ', "log": "out of memory\n"}},
    ],
    # Leaves five processes of its group behind, which hold its output.
    "children": [{"children": {"count": 5, "hold_output": True}}, {"say": "They work on."}, {"cost": 0.01}],
    # Leaves three processes behind that have left its group.
    "escape": [
        {"children": {"count": 3, "escape": True, "hold_output": True}},
        {"say": "They are gone."},
        {"cost": 0.01},
    ],
    # Hangs, and does not end when it is asked to.
    "ignore-term": [{"ignore_term": True}, {"hang": True}],
    # Writes what is no JSON, no text or far too long before, between and after its lines.
    "noise": [
        {"noise": "starting up {1 of 2}"},
        {"noise": {"text": "deprecated", "to": "stderr"}},
        {"noise": {"text": "bytes", "invalid": True}},
        {"noise": {"text": "[1, 2, 3]"}},
        {"noise": {"text": "long ", "size": _LONG}},
        {"say": "Heard through the noise."},
        {"noise": {"text": "bytes", "to": "stderr", "invalid": True}},
        {"cost": 0.01},
    ],
    # Answers and stays.
    "no-exit": [{"say": "Done."}, {"cost": 0.01}, {"no_exit": True}],
    # Costs five dollars.
    "expensive": [{"say": "That was a lot of work."}, {"cost": 5.0}, {"turns": 40}],
    # Answers that it failed.
    "error": [{"error": "the model gave up"}, {"cost": 0.03}],
    # Takes its time.
    "slow": [{"say": "Wait "}, {"wait": 0.3}, {"say": "a moment."}, {"wait": 0.3}, {"cost": 0.01}],
}

_BEHAVIOR = re.compile(r"\bMOOD:([a-z-]+)")


def behavior_of(prompt: str) -> list[Step]:
    """Return the steps of the mood that a prompt names."""
    named = _BEHAVIOR.search(prompt)
    name = named[1] if named else "ok"
    if name not in BEHAVIORS:
        raise BadScript(f"unknown mood {name!r}; use one of {', '.join(BEHAVIORS)}")
    return BEHAVIORS[name]


def hang() -> NoReturn:
    """Do nothing for ever; a signal that is not ignored still ends it."""
    while True:
        signal.pause()


def ignore_term() -> None:
    """Do not end when asked to."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def die(how: Mapping[str, Any]) -> NoReturn:
    """End at once, by a signal or with a code."""
    if how.get("log"):
        os.write(2, str(how["log"]).encode("utf-8", "backslashreplace"))
    if "signal" in how:
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


def noise(line: Mapping[str, Any]) -> bytes:
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
