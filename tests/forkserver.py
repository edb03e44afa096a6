"""A process that has loaded the program once and forks for every command: a process of its own each, without the load.

    python -m tests.forkserver SOCKET

`run` takes the place of `subprocess.run([sys.executable, "-m", "muster", …])`. Tests of the start-up itself, of
terminals and of pipes start the real command.
"""

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import random
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LONGEST = 1_000_000  # bytes of a request


def run(
    module: str,
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    stdin: bytes = b"",
    timeout: float,
) -> "subprocess.CompletedProcess[bytes]":
    """Run a module as a program to its end, in a process that is forked from the loaded one."""
    with contextlib.ExitStack() as files:
        given, out, err = (files.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        given.write(stdin)
        given.seek(0)
        request = {
            "module": module,
            "arguments": list(arguments),
            "folder": str(folder),
            "environment": dict(environment),
        }
        code = _server().ask(request, [file.fileno() for file in (given, out, err)], timeout)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess([module, *arguments], code, out.read(), err.read())


class _Server:
    """This side of the loaded process, which ends with its socket."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
            command = [sys.executable, "-m", "tests.forkserver", str(theirs.fileno())]
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )

    def ask(self, request: Mapping[str, object], files: list[int], timeout: float) -> int:
        """Return the exit code; a process that takes longer is killed, and TimeoutExpired raised."""
        socket.send_fds(self._socket, [json.dumps(request).encode()], files)
        pid = int(self._receive(None))
        try:
            return int(self._receive(timeout))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            self._receive(None)
            raise subprocess.TimeoutExpired(str(request["arguments"]), timeout) from None

    def _receive(self, timeout: float | None) -> bytes:
        self._socket.settimeout(timeout)
        answer = self._socket.recv(100)
        assert answer, "the fork server has ended"
        return answer


@cache
def _server() -> _Server:
    return _Server()


def serve(connection: socket.socket) -> Callable[[], object] | None:
    """Fork for every request; returns in each child with what it is to do, and in the server at the end."""
    while True:
        text, files, _, _ = socket.recv_fds(connection, LONGEST, 3)
        if not text:
            return None
        pid = os.fork()
        if pid == 0:
            connection.close()
            return _prepared(json.loads(text), files)
        for file in files:
            os.close(file)
        connection.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _prepared(request: dict[str, Any], files: list[int]) -> Callable[[], object]:
    """Give this process the streams, the folder, the environment and the arguments of a new one."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    module = request["module"]
    sys.argv = [module, *request["arguments"]]
    sys.path[0] = request["folder"]
    sys.path_importer_cache.clear()
    random.seed()
    return lambda: runpy.run_module(module, run_name="__main__", alter_sys=True)


def load() -> None:
    """Import everything that a command may need."""
    package = importlib.import_module("muster")
    for found in pkgutil.walk_packages(package.__path__, "muster."):
        if not found.name.endswith("__main__") and not found.name.startswith("muster.testing"):
            importlib.import_module(found.name)
    gc.freeze()


def main(number: str) -> None:
    """Serve until the other side is closed."""
    sys.path.insert(1, str(ROOT / "src"))  # the program of this tree, whichever one is installed
    load()
    work = serve(socket.socket(fileno=int(number)))
    if work is not None:
        work()


if __name__ == "__main__":
    main(*sys.argv[1:])
