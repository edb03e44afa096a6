"""A process that has loaded the program once and forks for every command: a process of its own each, without the load.

    python -m tests.forkserver SOCKET PIPE

`run` takes the place of `subprocess.run([sys.executable, "-m", "muster", …])`, `tests.forked.start` that of
`asyncio.create_subprocess_exec`. Tests of the start-up itself, of terminals and of pipes start the real command.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import random
import resource
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import click
from genai_prices.data_snapshot import get_snapshot

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
        code = server().ask(request, [file.fileno() for file in (given, out, err)], timeout)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess([module, *arguments], code, out.read(), err.read())


class _Server:
    """This side of the loaded process, which ends with its socket."""

    def __init__(self) -> None:
        self.address = f"\0muster-forks-{os.getpid()}"  # in no folder
        self._held, theirs = os.pipe()[::-1]
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asked:
            asked.bind(self.address)
            asked.listen(1000)  # those who ask before it is loaded wait
            files = [asked.fileno(), theirs]
            environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
            command = [sys.executable, "-m", "tests.forkserver", *map(str, files)]
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=environment, pass_fds=files, stdin=subprocess.DEVNULL
            )
        os.close(theirs)

    def begin(self, request: Mapping[str, object], files: list[int]) -> socket.socket:
        """Let a process begin; the socket tells its id and then its exit code."""
        asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        asking.connect(self.address)
        socket.send_fds(asking, [json.dumps(request).encode()], files)
        return asking

    def close(self) -> None:
        """Let the process end; it does when nobody holds its pipe any more."""
        os.close(self._held)
        self._process.wait()

    def ask(self, request: Mapping[str, object], files: list[int], timeout: float) -> int:
        """Return the exit code; a process that takes longer is killed, and TimeoutExpired raised."""
        with self.begin(request, files) as status:
            pid = int(received(status))
            status.settimeout(timeout)
            try:
                return int(received(status))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                status.settimeout(None)
                received(status)
                raise subprocess.TimeoutExpired(str(request["arguments"]), timeout) from None


class Forked:
    """A process that was forked from the loaded one, with what tests use of `subprocess.Popen`."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        files: int | None = None,
        shows_errors: bool = False,  # where the test shows its own, instead of in `stderr`
    ) -> None:
        request = {
            "module": module,
            "arguments": list(arguments),
            "folder": str(folder),
            "environment": dict(environment),
            "files": files,  # that it may open at first
        }
        out = os.pipe()
        err = (os.open(os.devnull, os.O_RDONLY), os.dup(2)) if shows_errors else os.pipe()
        null = os.open(os.devnull, os.O_RDONLY)
        self._status = server().begin(request, [null, out[1], err[1]])
        for file in (null, out[1], err[1]):
            os.close(file)
        self.stdout, self.stderr = os.fdopen(out[0]), os.fdopen(err[0])
        self.pid = int(received(self._status))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; raises TimeoutExpired when that takes longer."""
        if self.returncode is None:
            self._status.settimeout(timeout)
            try:
                self.returncode = int(received(self._status))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0) from None
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Read all that it still writes until it has ended; raises TimeoutExpired after killing it."""
        with ThreadPoolExecutor(2) as reading:
            out, errors = (reading.submit(stream.read) for stream in (self.stdout, self.stderr))
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            said = out.result(), errors.result()
        self._close()
        return said

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it without a word."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> "Forked":
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()
        self._close()

    def _close(self) -> None:
        for opened in (self.stdout, self.stderr, self._status):
            opened.close()


def received(status: socket.socket) -> bytes:
    """Return the next thing that is told of a process."""
    answer = status.recv(100)
    assert answer, "the fork server has ended"
    return answer


COMMAND = """#!{python} -IS
import json, os, socket, sys
asked = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asked.connect({address!r})
request = dict(module="muster", arguments=sys.argv[1:], folder=os.getcwd(), environment=dict(os.environ))
socket.send_fds(asked, [json.dumps(request).encode()], [0, 1, 2])
asked.recv(100)
code = int(asked.recv(100))
os._exit(code) if code >= 0 else os.kill(os.getpid(), -code)
"""


def install(folder: Path) -> Path:
    """Write `muster` into a folder, for PATH: a process that is forked from the loaded one as well."""
    folder.mkdir(exist_ok=True)
    command = folder / "muster"
    command.write_text(COMMAND.format(python=sys.executable, address=server().address), encoding="utf-8")
    command.chmod(0o755)
    return command


@cache
def server() -> _Server:
    """Return the loaded process of these tests."""
    started = _Server()
    atexit.register(started.close)
    return started


class _Forks:
    """Forks for every request and tells whoever asked: the id of the process, and its exit code when it has ended.

    Whoever asks connects, passes on three streams and waits. A process that nobody waits for is ended.
    """

    def __init__(self, asked: socket.socket, held: BinaryIO) -> None:
        self._waiting: dict[int, tuple[int, socket.socket]] = {}  # by the file that tells the end: process and asker
        self._events = selectors.DefaultSelector()
        self._events.register(asked, selectors.EVENT_READ, self._accept)
        self._events.register(held, selectors.EVENT_READ, lambda _: _OVER)

    def serve(self) -> Callable[[], object] | None:
        """Return in each child with what it is to do, and in the server at the end."""
        while True:
            for key, _ in self._events.select():
                if key.fd not in self._events.get_map():
                    continue  # it was closed together with one before it
                work = key.data(key.fileobj)
                if work is not None:
                    return None if work is _OVER else work

    def _accept(self, asked: socket.socket) -> None:
        asker, _ = asked.accept()
        self._events.register(asker, selectors.EVENT_READ, self._take)

    def _take(self, asker: socket.socket) -> object:
        self._events.unregister(asker)
        text, files, _, _ = socket.recv_fds(asker, LONGEST, 3)
        if text:
            return self._fork(text, files, asker)
        asker.close()
        return None

    def _fork(self, text: bytes, files: list[int], asker: socket.socket) -> object:
        pid = os.fork()
        if pid == 0:
            self._close()
            asker.close()
            return _prepared(json.loads(text), files)
        for file in files:
            os.close(file)
        ended = os.pidfd_open(pid)
        self._waiting[ended] = (pid, asker)
        self._events.register(ended, selectors.EVENT_READ, self._end)
        self._events.register(asker, selectors.EVENT_READ, lambda _: self._abandon(pid, asker))
        _tell(asker, pid)
        return None

    def _abandon(self, pid: int, asker: socket.socket) -> None:
        """End a process whose asker has gone: nobody else knows it."""
        self._events.unregister(asker)
        os.kill(pid, signal.SIGKILL)

    def _end(self, ended: int) -> None:
        pid, asker = self._waiting.pop(ended)
        self._events.unregister(ended)
        os.close(ended)
        with contextlib.suppress(KeyError):
            self._events.unregister(asker)
        _, code = os.waitpid(pid, 0)
        _tell(asker, os.waitstatus_to_exitcode(code))
        asker.close()

    def _close(self) -> None:
        """Close all that a child has no use for, so that it keeps nothing open."""
        for file in [one for one in self._events.get_map() if one not in self._waiting]:
            self._events.get_map()[file].fileobj.close()  # type: ignore[union-attr]
        for file, (_, asker) in self._waiting.items():
            os.close(file)
            asker.close()
        self._events.close()


_OVER = object()


def _tell(asker: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # it may have gone
        asker.send(str(number).encode())


def _prepared(request: dict[str, Any], files: list[int]) -> Callable[[], object]:
    """Give this process the streams, the folder, the environment and the arguments of a new one."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = (_stream(number) for number in range(3))
    if request.get("session"):
        os.setsid()
    if request.get("files"):
        resource.setrlimit(resource.RLIMIT_NOFILE, (request["files"], resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    module = request["module"]
    sys.argv = [module, *request["arguments"]]
    sys.path[0] = request["folder"]
    sys.path_importer_cache.pop(request["folder"], None)
    random.seed()
    return lambda: runpy.run_module(module, run_name="__main__", alter_sys=True)


def _stream(number: int) -> Any:
    """Return a standard stream as a new process has it: the loaded one's may have been a file, and this one a pipe."""
    errors = "backslashreplace" if number == 2 else "strict"
    return open(
        number,
        "w" if number else "r",
        encoding="utf-8",
        errors=errors,
        buffering=1 if number == 2 else -1,
        closefd=False,
    )


def load() -> None:
    """Import everything that a command may need."""
    package = importlib.import_module("muster")
    for found in pkgutil.walk_packages(package.__path__, "muster."):
        if not found.name.endswith("__main__") and not found.name.startswith("muster.testing"):
            importlib.import_module(found.name)
    # What every command would read or compile again: its declaration, the price list, queries, patterns of secrets.
    _make_commands(importlib.import_module("muster.cli.commands").app)
    get_snapshot()
    importlib.import_module("muster.store.queries").queries()
    importlib.import_module("muster.text.secrets.redaction").redact("a text in which nothing is to be found")
    importlib.import_module("muster.api.app").description()
    importlib.import_module("muster.store.sqlite.connection").empty_store()
    gc.set_threshold(50_000, 20, 20)  # as in tests/conftest.py: a command lives for a moment
    gc.freeze()


def _make_commands(group: click.Command | None) -> None:
    """Make every command below a group, which reads what it declares."""
    if isinstance(group, click.Group):
        context = click.Context(group)
        for command in [group.get_command(context, name) for name in group.list_commands(context)]:
            _make_commands(command)


def main(asked: str, held: str) -> None:
    """Serve until the other side of a pipe is closed."""
    sys.path.insert(1, str(ROOT / "src"))  # the program of this tree, whichever one is installed
    load()
    work = _Forks(socket.socket(fileno=int(asked)), os.fdopen(int(held), "rb", buffering=0)).serve()
    if work is not None:
        _finish(work)


def _finish(work: Callable[[], object]) -> NoReturn:
    """Run a program to its end and leave without taking the loaded modules apart, which takes longer than a test."""
    code: object = 0
    try:
        work()
    except KeyboardInterrupt:
        raise  # the interpreter ends itself by the signal
    except SystemExit as error:
        code = error.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # as at the end of every program: threads first, then these
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
