"""A real PostgreSQL in a folder of its own: started, stopped, killed and started again by tests."""

import os
import pwd
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import psycopg

USER = "muster"
PATIENCE = 60.0


class PostgresServer:
    """A server on a socket in its folder, and nowhere else."""

    def __init__(self, binaries: Path, folder: Path, account: str | None) -> None:
        self._binaries, self._folder, self._account = binaries, folder, account
        self._data = folder / "data"

    @property
    def conninfo(self) -> str:
        return f"host={self._folder} user={USER} dbname=postgres"

    @property
    def socket(self) -> Path:
        return self._folder / ".s.PGSQL.5432"

    def url(self, database: str = "postgres", password: str = "") -> str:
        secret = f"&password={quote(password)}" if password else ""
        return f"postgresql:///{database}?host={quote(str(self._folder), safe='')}&user={USER}{secret}"

    def prepare(self, password: str = "") -> None:
        """Make the data folder; with a password everybody has to give it."""
        command: list[Path | str] = [self._binaries / "initdb", "-D", self._data, "-U", USER, "--no-sync"]
        if not password:
            self.run([*command, "-A", "trust"])
            return
        file = self._folder / "password"
        file.write_text(password)
        os.chmod(file, 0o644)  # noqa: PTH101 - another user reads it
        self.run([*command, "-A", "scram-sha-256", f"--pwfile={file}"])

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories={self._folder} -c fsync=off"
        log = self._folder / "log"
        self.run([self._binaries / "pg_ctl", "-D", self._data, "-w", "-t", "180", "-l", log, "-o", options, "start"])

    def stop(self) -> None:
        """End the server at once, as a crash does, unless it was killed."""
        if not (self._data / "postmaster.pid").exists():
            return
        self.run([self._binaries / "pg_ctl", "-D", self._data, "-w", "-t", "180", "-m", "immediate", "stop"])

    def kill(self) -> None:
        """End every process of the server as kill -9 does."""
        main = int((self._data / "postmaster.pid").read_text().splitlines()[0])
        family = [main, *map(int, Path(f"/proc/{main}/task/{main}/children").read_text().split())]
        for process in family:  # the main one first, so that it starts no others
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        end = time.monotonic() + PATIENCE
        while any(map(_runs, family)):
            assert time.monotonic() < end, "PostgreSQL does not end"
            time.sleep(0.01)
        # In a container nobody may ask for its exit code: it would count as one that still runs.
        for file in (self._data / "postmaster.pid", self._folder / f"{self.socket.name}.lock"):
            file.unlink()

    def restart(self) -> None:
        """Kill it and start it again; what was committed is there."""
        self.kill()
        self.start()

    def run(self, command: Sequence[Path | str]) -> None:
        subprocess.run(
            [str(part) for part in command],
            user=self._account,
            cwd="/tmp",
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            timeout=200,
        )


@contextmanager
def postgres_server(password: str = "") -> Iterator[PostgresServer]:
    """Start a server, and stop it at the end."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = shutil.which("postgres")
    where = binaries[-1] if binaries else Path(found).parent if found else None
    assert where is not None, "PostgreSQL is missing; `make test` installs it (Debian package postgresql)"
    # Not in tmp_path: the path of a socket must be short, and another user has to reach it.
    folder = Path(subprocess.check_output(["mktemp", "-d", "/tmp/muster-pg-XXXXXX"], text=True).strip())
    server = PostgresServer(where, folder, _owner(folder))
    try:
        server.prepare(password)
        server.start()
        yield server
    finally:
        try:
            server.stop()
        finally:
            shutil.rmtree(folder)


@contextmanager
def new_database(server: str, template: str) -> Iterator[str]:
    """Make a database of its own at a server, as a copy of another one, and give its address."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as session:
        session.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy".encode())
    yield url_of(server, name)
    with psycopg.connect(server, autocommit=True) as session:
        session.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def url_of(server: str, name: str) -> str:
    """Return the address of a database at a server."""
    folder = psycopg.conninfo.conninfo_to_dict(server)["host"]
    return f"postgresql:///{name}?host={quote(str(folder), safe='')}&user={USER}"


def _runs(process: int) -> bool:
    """Return whether a process is there, and not only its exit code."""
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def _owner(folder: Path) -> str | None:
    """PostgreSQL refuses to run as root: give the folder to its own user."""
    if os.geteuid() != 0:
        return None
    account = pwd.getpwnam("postgres")
    os.chown(folder, account.pw_uid, account.pw_gid)
    return "postgres"
