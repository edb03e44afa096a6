"""A real PostgreSQL in a folder of its own: started, stopped, killed and started again by tests."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

USER = "muster"


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
        """End the server at once, as a crash does."""
        self.run([self._binaries / "pg_ctl", "-D", self._data, "-w", "-t", "180", "-m", "immediate", "stop"])

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


def _owner(folder: Path) -> str | None:
    """PostgreSQL refuses to run as root: give the folder to its own user."""
    if os.geteuid() != 0:
        return None
    account = pwd.getpwnam("postgres")
    os.chown(folder, account.pw_uid, account.pw_gid)
    return "postgres"
