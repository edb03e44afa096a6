"""Opens the witness in a new folder: addresses of providers and the root of verifications are mapped.

The program offers no mapping: both are written into the copy of the store before the program sees it. `batches.desk`
holds the base address and the name of the account, `batches.account` that name again, and `runs.spec` the root. The
name of an account is made from the address and the key; how, is part of what a store holds, and is repeated here.
"""

import hashlib
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.witness.home import KEY, STATE, WITNESS, Home

ORIGIN = "http://127.0.0.1:9"  # of the providers, in the witness; nobody listens there
EVIDENCE = ("evidence.tar", "evidence.key", "evidence.key.pub")
PLACE = Path("/tmp/witness/project")  # where it was made


def open_witness(
    folder: Path,
    *,
    witness: Path = WITNESS,
    project: Path = WITNESS / "project",
    place: Path = PLACE,
    beside: tuple[str, ...] = (STATE, *EVIDENCE),
) -> Home:
    """Copy a witness into an empty folder, as the project that it was."""
    shutil.copytree(project, folder / "project")
    home = Home(folder / "project")
    home.make_repository()
    home.database.parent.mkdir()
    home.database.parent.chmod(0o700)
    shutil.copyfile(witness / "muster.db", home.database)
    home.database.chmod(0o600)
    for name in beside:
        shutil.copyfile(witness / name, folder / name)
        (folder / name).chmod(0o600)
    map_root(home.database, place, home.folder)
    return home


def map_root(database: Path, old: Path, new: Path) -> None:
    """Let verifications look at another folder."""
    with closing(sqlite3.connect(database)) as store, store:
        for run, text in store.execute("SELECT id, spec FROM runs WHERE workload = 'waves'").fetchall():
            spec = json.loads(text)
            assert spec["root"] == str(old)
            spec["root"] = str(new)
            store.execute("UPDATE runs SET spec = ? WHERE id = ?", (json.dumps(spec), run))


def map_address(database: Path, old: str, new: str) -> None:
    """Let batches be at another address."""
    with closing(sqlite3.connect(database)) as store, store:
        for batch, text in store.execute("SELECT id, desk FROM batches").fetchall():
            desk = json.loads(text)
            assert desk["account"] == account_at(old), "the name of an account is not made as it was"
            desk["base_url"] = desk["base_url"].replace(old, new)
            desk["account"] = account_at(new)
            given = (json.dumps(desk, separators=(",", ":")), account_at(new), batch)
            store.execute("UPDATE batches SET desk = ?, account = ? WHERE id = ?", given)


def account_at(origin: str) -> str:
    """Name the account of the witness at an address."""
    return hashlib.sha256(f"muster account\n{origin}\n{KEY}".encode()).hexdigest()[:16]


def known_ids(database: Path = WITNESS / "muster.db") -> frozenset[str]:
    """Read the ids of all runs and batches of the witness."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro&immutable=1", uri=True)) as store:
        rows = store.execute("SELECT id FROM runs UNION SELECT id FROM batches").fetchall()
    return frozenset(row[0] for row in rows)
