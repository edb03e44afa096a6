"""Records what commands say, without what differs from one time to the next.

Replaced are: the folder (`<project>`), the address of the rehearsal server (`<sim>`), ids of runs and batches that are
not in the witness (`<id 1>` …), moments after it was made (`<later>`), the interpreter and versions (`<python>`,
`<version>`), and fields that a step calls volatile. Of commands that do new work also how long it took (`DURATIONS`)
and the process that did it; their calls are sorted, and of events only the kinds are kept. All else stays as it is.
"""

import json
import re
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.witness.home import WITNESS, Home
from tests.witness.opening import ORIGIN, known_ids, map_address, open_witness
from tests.witness.steps import CHANGES, READS, Step

RECORDED = WITNESS / "recorded"
IDS = re.compile(r"\bb?1[mn][0-9a-hjkmnp-tv-z]{14}\b")  # no hexadecimal digest looks like this
MOMENTS = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00|Z| UTC)?")
STAMPS = re.compile(r"\b1[789]\d{8}\.\d+\b")
ADDRESSES = re.compile(r"http://127\.0\.0\.1:\d+")
DURATIONS = {"seconds", "elapsed_ms", "latency_ms", "p50", "p95", "p99", "wait", "active"}
DRIVERS = re.compile(r"process \d+ on [^\s,.]+")
FILED = re.compile(r"\b\d{8}T\d{6}Z|\b\d{4}-\d\d-\d\d(?=\.jsonl)")  # in the names of files
WORDS = [
    (re.compile(r"\d[\d,]* bytes, version \d+"), "<bytes>, version <version>"),
    (re.compile(r"^\d+\.\d+\.\d+$"), "<version>"),
    (re.compile(re.escape(sys.executable)), "<python>"),
]


@dataclass
class Normaliser:
    """Takes out what differs; new ids are numbered in the order in which they are seen."""

    home: Home
    known: frozenset[str]
    made_at: float
    new_work: bool = False
    volatile: tuple[str, ...] = ()
    _new: dict[str, str] = field(default_factory=dict)

    def value(self, value: Any, name: str = "") -> Any:
        """Return a JSON value without what differs."""
        if name in self.volatile:
            return f"<{name}>"
        if isinstance(value, dict):
            return {self.text(key): self.value(one, key) for key, one in value.items()}
        if self.new_work and name == "events" and isinstance(value, list):
            return sorted({event["kind"] for event in value})
        if self.new_work and name == "call_list" and isinstance(value, list):
            value = sorted(value, key=lambda call: str(call["key"]))
        if isinstance(value, list):
            return [self.value(one, name) for one in value]
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._number(value, name)
        return value

    def text(self, text: str) -> str:
        """Return a text without what differs."""
        text = text.replace(str(self.home.folder), "<project>").replace(str(self.home.folder.parent), "<place>")
        text = ADDRESSES.sub("<sim>", text)
        text = MOMENTS.sub(self._moment, text)
        text = STAMPS.sub(lambda found: "<later>" if float(found[0]) > self.made_at else found[0], text)
        if self.new_work:
            text = FILED.sub("<later>", DRIVERS.sub("process <pid> on <host>", text))
        for pattern, words in WORDS:
            text = pattern.sub(words, text)
        return IDS.sub(lambda found: self._id(found[0]), text)

    def _number(self, value: float, name: str) -> Any:
        if self.new_work and name in DURATIONS:
            return "<duration>"
        return "<later>" if self.made_at < value < self.made_at + 1e9 else value

    def _moment(self, found: "re.Match[str]") -> str:
        plain = found[0].removesuffix("Z").removesuffix("+00:00").removesuffix(" UTC")
        at = datetime.fromisoformat(plain + "+00:00").timestamp()
        return "<later>" if at > self.made_at else found[0]

    def _id(self, found: str) -> str:
        if found in self.known:
            return found
        return self._new.setdefault(found, f"<id {len(self._new) + 1}>")


@dataclass
class Recorder:
    """Runs steps in an opened witness."""

    home: Home
    normaliser: Normaliser
    names: Mapping[str, str]  # ids by what steps call them

    def record(self, step: Step) -> dict[str, Any]:
        """Run one step and return its record."""
        self.normaliser.volatile = step.volatile
        done = self.home.muster(*(self._word(word) for word in step.words))
        found: dict[str, Any] = {"words": list(step.words), "code": done.code, "out": self._out(done.out)}
        if step.file:
            found["file"] = self.normaliser.text((self.home.folder / step.file).read_text())
        return found

    def _word(self, word: str) -> str:
        if word.startswith(("@", "batch@", "call@")):
            return self.names[word]
        return word

    def _out(self, out: str) -> Any:
        try:
            lines = [json.loads(line) for line in out.splitlines()] if out.startswith("{") else None
        except json.JSONDecodeError:
            lines = None
        if lines is None:
            return [self.normaliser.text(line) for line in out.splitlines()]
        return [self.normaliser.value(line) for line in lines]


def recorder_for(home: Home, *, new_work: bool) -> Recorder:
    """Make a recorder for an opened witness."""
    ids = frozenset(known_ids())
    return Recorder(home, Normaliser(home, ids, facts()["made_at"], new_work), names())


def record_reading(folder: Path, part: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Run the commands of a part that changes nothing, and give each record with the file that holds it."""
    home = open_witness(folder)
    recorder = recorder_for(home, new_work=False)
    for step in READS[part]():
        yield RECORDED / part / f"{step.name}.json", recorder.record(step)


def record_changes(folder: Path, part: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Run the commands of one part in an opened witness with its rehearsal server, and end with what was paid."""
    home = open_witness(folder)
    recorder = recorder_for(home, new_work=True)
    with home.rehearse() as rehearsal:
        map_address(home.database, ORIGIN, rehearsal.origin)
        before = rehearsal.audit()
        for number, step in enumerate(CHANGES[part](), 1):
            yield RECORDED / part / f"{number:02}-{step.name}.json", recorder.record(step)
        yield RECORDED / part / "paid.json", paid(before, rehearsal.audit())


def paid(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Tell what the rehearsal server was paid for between two audits."""
    digests = {name: count - before["by_digest"].get(name, 0) for name, count in after["by_digest"].items()}
    return {
        "calls": after["calls"] - before["calls"],
        "batches": len(after["batches"]) - len(before["batches"]),
        "by_digest": {name: count for name, count in sorted(digests.items()) if count},
    }


def facts() -> dict[str, Any]:
    """Read when and by which version the witness was made."""
    return read(WITNESS / "witness.json")


def names() -> dict[str, str]:
    """Read the ids of the witness by what steps call them."""
    with closing(sqlite3.connect(f"file:{WITNESS / 'muster.db'}?mode=ro&immutable=1", uri=True)) as store:
        runs = store.execute("SELECT name, id, origin_key FROM runs ORDER BY created_at").fetchall()
        batches = store.execute("SELECT name, batch_id FROM batch_runs JOIN runs ON runs.id = run_id").fetchall()
        calls = store.execute("SELECT key FROM journal WHERE key LIKE 'wave/1/auditor/%' AND kind = 'call'").fetchall()
    found = {"call@auditor": calls[0][0]}
    found |= {"@fork" if key else f"@{name}": run for name, run, key in runs}
    return found | {f"batch@{name}": batch for name, batch in sorted(batches, reverse=True)}


def write(record: Mapping[str, Any], path: Path) -> None:
    """Keep a record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    """Read a record."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
