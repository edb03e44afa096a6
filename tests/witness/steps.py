"""What is done with the witness, command by command: first what only reads, then what changes it, in this order."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

SUITES = ("finished", "rejudged", "base", "second", "matrix", "interrupted", "killed", "waiting")
VERIFICATIONS = ("looked", "looked-later")
OTHERS = ("asked", "asked-in-batch", "asked-later", "unwanted", "lost", "labels", "fork")
RUNS = (*SUITES, *VERIFICATIONS, *OTHERS)
# `fork` has the name of the run that it was made from, which is then the older one: both are named by their ids.
FINISHED = ("finished", "rejudged", "base", "second", "matrix", "looked", "asked", "asked-in-batch", "labels", "fork")
FORMATS = ("terminal", "json", "junit", "sarif", "markdown", "html")
EVER = ("--since", "2020-01-01")
QUICKLY = ("--linger", "0", "--poll-interval", "0.05")

# Commands that are not recorded, and why.
LEFT_OUT = {
    "store copy": "its target is another store, which nothing else here has",
    "demo": "it makes a store of its own, and says how fast this machine is",
    "completion": "its answer is a script of the parser that it comes from",
    "agents models": "the witness is older than the list of models",
    "answer": "the witness is older than people who are asked",
    "metrics": "the witness is older than metrics",
    "sim": "it is the server beside all of this, and answers in its own way",
    "audit": "the witness is older than users",
    "mcp": "it serves until its client leaves",
    "view": "it opens a browser",
    **dict.fromkeys(("cases", "costs", "trend"), "the witness is older than they are"),
    **dict.fromkeys(("durable", "record", "replay"), "the witness is older than the gateway"),
    "serve": "it runs until it is stopped, and answers over HTTP",
    **dict.fromkeys(
        (
            "chain cancel", "chain list", "chain plan", "chain progress", "chain resume", "chain run", "fan-out",
            "battle", "battle status", "battle messages", "battle decisions", "scale", "scale status",
            "council", "council inject", "council stop", "trace",
            "pool context delete", "pool context get", "pool context list", "pool context set", "pool drain", "pool gc",
            "pool message broadcast", "pool message count", "pool message peek", "pool message read",
            "pool message send", "pool metrics", "pool overlaps",
            "pool scale", "pool slots", "pool start", "pool status", "task allow", "task approve", "task cancel",
            "task change", "task claim", "task deny", "task diff", "task list", "task logs", "task merge",
            "task reject", "task result", "task retry", "task run", "task submit", "task watch",
        ),
        "the witness is older than battles, chains, councils and the pool",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One command; in its words @NAME is the id of a run, batch@NAME of its batch, call@NAME the key of a call."""

    words: tuple[str, ...]
    file: str = ""  # it writes this one, which is recorded too
    volatile: tuple[str, ...] = ()  # fields of its answer that say something about this machine or this program

    @property
    def name(self) -> str:
        """What its record is called."""
        words = " ".join(word.strip("-") for word in self.words if word not in ("--json", *QUICKLY))
        kept = "".join(letter if letter.isalnum() or letter in "_." else "-" for letter in words)
        return re.sub("-+", "-", kept)[:80].strip("-") + ("" if "--json" in self.words else "-as-text")


def _step(*words: str, file: str = "", volatile: tuple[str, ...] = ()) -> Step:
    return Step((*words, "--json"), file, volatile)


def runs_and_batches() -> Iterator[Step]:
    """Give what is told about runs and batches."""
    yield _step("runs", "list", "--limit", "100")
    yield _step("runs", "list", "--state", "waiting")
    for run in RUNS:
        yield _step("runs", "show", f"@{run}", "--calls", "--events")
    yield _step("runs", "show", "finished", "--call", "case/desk/finds-the-order/@claude/1/2")
    yield _step("runs", "show", "looked", "--call", "call@auditor")
    yield _step("runs", "show", "looked", "--call", "wave/1/checker/command")
    yield _step("runs", "show", "nothing")
    for run in ("finished", "looked", "waiting"):
        yield _step("runs", "watch", f"@{run}")
    yield _step("batch", "list")
    for run in ("asked-in-batch", "waiting", "looked-later"):
        yield _step("batch", "show", f"batch@{run}")
    yield Step(("batch", "show", "batch@asked-in-batch", "--lines"))
    yield _step("batch", "stats", *EVER)


def reports() -> Iterator[Step]:
    """Give reports: in every format of those runs that differ most, and as JSON of the others."""
    for run in SUITES:
        yield _step("report", f"@{run}")
    for run in ("finished", "waiting"):
        for kind in FORMATS:
            yield Step(("report", f"@{run}", "--format", kind))
    for kind in ("terminal", "markdown", "html"):
        yield Step(("report", "@matrix", "--format", kind))
    for run in VERIFICATIONS:
        yield _step("report", f"@{run}")
        for kind in FORMATS:
            yield Step(("report", f"@{run}", "--format", kind))
    yield _step("report", "asked")


def readings() -> Iterator[Step]:
    """Give every other command that changes nothing."""
    yield _step("baseline", "list")
    yield _step("review", "finished")
    yield from _comparisons()
    yield _step("verify", "metrics", *EVER)
    yield _step("verify", "plan", "src")
    yield _step("verify", "plan", "--changed", "--batch")
    yield _step("plan", "desk", "--agent", "claude", "--judge", "gpt", "--epochs", "2", "--budget", "1")
    yield _step("plan", "desk", "--only-failed", "finished", "--dispatch", "batch")
    yield _step("validate", "desk", "bakery", "verify.yaml")
    yield _step("lint", "desk", "bakery")
    for kind in ("suite", "verify", "toml"):
        yield _step("schema", kind)
    yield _step("store", "info", volatile=("version", "sqlite", "bytes", "free_bytes"))
    yield _step("doctor")
    yield _step("evidence", "verify", "../evidence.tar", "--public-key", "../evidence.key.pub")
    yield _step("evidence", "rescore", "../evidence.tar", "--public-key", "../evidence.key.pub")


def _comparisons() -> Iterator[Step]:
    for pair in (("nightly", "second"), ("base", "base"), ("matrix:careful", "matrix:hasty"), ("finished", "rejudged")):
        yield _step("compare", *pair)
    yield _step("compare", "nightly", "second", "--margin", "0.05", "--inconclusive", "ok")
    yield Step(("compare", "nightly", "second"))
    yield Step(("compare", "nightly", "second", "--format", "markdown"))


def replaying() -> Iterator[Step]:
    """Give the replays of all finished runs: nobody is asked."""
    for run in FINISHED:
        yield _step("runs", "replay", f"@{run}")
    yield _step("run", "desk", "--replay", "finished", "--name", "played")
    yield _step("run", "bakery", "--reuse", "second", "--name", "reused", "--concurrency", "1")


def going_on() -> Iterator[Step]:
    """Give what goes on with runs that are not over."""
    yield _step("runs", "resume", "interrupted")
    yield _step("runs", "resume", "killed")
    yield _step("batch", "cancel", "batch@unwanted", *QUICKLY)
    yield _step("runs", "cancel", "unwanted", *QUICKLY)
    yield _step("batch", "fetch", "batch@asked-later", *QUICKLY)
    yield _step("runs", "resume", "asked-later", *QUICKLY)
    yield _step("batch", "watch", "batch@waiting", *QUICKLY)
    yield _step("runs", "resume", "waiting", *QUICKLY)
    yield _step("verify", "resume", "looked-later", *QUICKLY)
    yield _step("batch", "reconcile", *QUICKLY)
    yield _step("runs", "resume", "lost", "--detach")
    yield _step("worker", "--until-idle", *QUICKLY)
    for run in ("interrupted", "killed", "lost", "unwanted", "asked-later", "waiting", "looked-later"):
        yield _step("runs", "show", run, "--calls", "--events")
    yield _step("batch", "list")


def making() -> Iterator[Step]:
    """Give the commands that make something new."""
    yield _step("ask", "claude", "How long can I return a chair?")
    yield _step("ask", "gpt", "In a batch again", "--dispatch", "batch", *QUICKLY)
    yield _step("run", "desk", "--agent", "claude", "--judge", "gpt", "--concurrency", "1", "--name", "anew")
    yield _step("runs", "start", "triage", "--input", '{"agent": "careful", "tickets": ["a", "b"]}')
    yield _step("runs", "fork", "@labels", "--from", "ticket/1")
    yield _step("runs", "rejudge", "finished", "--judge", "claude", "--concurrency", "1")
    yield _step("verify", "src", "--concurrency", "1", "--name", "looked-anew")
    yield _step("verify", "allow-secret", "settings.py:3", file="verify.yaml")
    yield _step("verify", "hook", "install")
    yield _step("review", "second", "bakery/price/a02", "right", "--by", "ada")
    yield _step("baseline", "set", "other", "second")
    yield _step("baseline", "remove", "nightly")
    yield _step("generate", "--agent", "writer", "--extend", "desk", "--count", "1", "--dry-run")
    yield _step("init", "new-suite", file="new-suite/cases.yaml")
    yield _step("init", "new-checks", "--kind", "verify")
    yield _step("evidence", "keygen", "-o", "new.key", volatile=("key_id",))
    yield _step("evidence", "export", "finished", "-o", "new.tar", "--key", "../evidence.key")
    yield _step("evidence", "verify", "new.tar", "--public-key", "../evidence.key.pub")
    yield _step("runs", "export", "finished", "-o", "finished.jsonl")
    yield _step("runs", "import", "finished.jsonl")
    yield _step("runs", "delete", "@asked", "@base")
    yield _step("runs", "delete", "@looked")
    yield _step("store", "vacuum", volatile=("bytes_before", "bytes_after"))
    yield _step("runs", "list", "--limit", "100")


READS = {"runs": runs_and_batches, "reports": reports, "readings": readings}
CHANGES = {"replaying": replaying, "going-on": going_on, "making": making}
