"""Rows to values and back: JSON text with configured secrets taken out."""

import json
from collections.abc import Sequence
from typing import Any

from muster.domain.budget import Budgets, lineage_level
from muster.domain.call import Reply
from muster.domain.dispatch import LIVE, Dispatch
from muster.domain.entry import AttemptState, Entry, EntryKind, EntryState, Event
from muster.domain.errors import BadArgument
from muster.domain.ids import RunId
from muster.domain.money import Lane, Microdollars
from muster.domain.rules import FIRST_RULES
from muster.domain.run import CallCounts, Driver, Lease, NewRun, Origin, Reuse, Run, RunState, Spent, StartRequest
from muster.store.base import Attempt
from muster.store.queries import Row
from muster.text import typed

REDACTED = "[redacted]"
PROBE = 12  # characters of a secret that are looked for first: with more, Python crawls through runs of one letter

_text_decoder = typed.Decoder(str)
_reply_decoder = typed.Decoder(Reply)
_dispatch_decoder = typed.Decoder(Dispatch)
_budgets_decoder = typed.Decoder(Budgets)


class Codec:
    """Writes JSON text that never holds a configured secret."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        self._named = tuple(secrets)
        self._spell(self._named)

    def hide(self, secret: str) -> None:
        """Take one more secret out of what is written from now on."""
        self._named = (*self._named, secret)
        self._spell(self._named)

    def _spell(self, secrets: Sequence[str]) -> None:
        named = [secret for secret in secrets if len(secret) >= 8]
        # As they are, and as they stand in JSON text; the longest first, so that no rest of one is left.
        spelled = {text for secret in named for text in (secret, *_spellings(secret))}
        longest = sorted(spelled, key=lambda text: (-len(text), text))
        self._secrets = tuple((text[:PROBE], text) for text in longest)
        self._hidden = tuple((_bytes(text[:PROBE]), _bytes(text)) for text in longest)

    def text(self, value: Any) -> str:
        """Write a value as JSON text."""
        try:
            text = typed.encode(value).decode()
        except UnicodeEncodeError:  # half a surrogate pair: kept as an escape, which every database takes
            text = json.dumps(typed.to_builtins(value))
        return self.clean(text)

    def clean(self, text: str) -> str:
        """Take configured secrets out of a text."""
        for probe, secret in self._secrets:
            if probe in text:
                text = text.replace(secret, REDACTED)
        return text

    def clean_bytes(self, data: bytes) -> bytes:
        """Take configured secrets out of bytes that hold text."""
        for probe, secret in self._hidden:
            if probe in data:
                data = data.replace(secret, REDACTED.encode())
        return data

    def checked(self, key: str) -> str:
        """Refuse a key that holds a secret: changing it would make it another key."""
        if self.clean(key) != key:
            raise BadArgument("a key contains a configured secret; use another key")
        return key

    def optional(self, value: Any) -> str | None:
        """Write a value as JSON text, None as nothing."""
        return None if value is None else self.text(value)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # a variable of the environment may hold what is no text


def _spellings(secret: str) -> tuple[str, str]:
    return json.dumps(secret, ensure_ascii=False)[1:-1], json.dumps(secret)[1:-1]


def read(text: str | None) -> Any:
    """Read JSON text, nothing as None."""
    if text is None:
        return None
    if text.startswith('"'):  # a page of a suite is one long text, which is read several times as fast
        try:
            return _text_decoder.decode(text)
        except typed.DecodeError:  # half a surrogate pair
            pass
    return json.loads(text)


def run_parameters(new: NewRun, codec: Codec) -> dict[str, Any]:
    """Spell a new run as parameters."""
    origin = new.origin
    budgets = new.budgets or Budgets(lineage=lineage_level(new.id))
    return {
        "id": codec.checked(new.id),
        "name": new.name and codec.clean(new.name),
        "workload": new.workload,
        "spec": codec.text(new.spec),
        "tags": codec.text(new.tags),
        "seed": new.seed,
        "timeout": new.timeout,
        "concurrency": new.concurrency,
        "submitted": int(new.submitted),
        "dispatch": None if new.dispatch == LIVE else codec.text(new.dispatch),
        "parent_id": new.parent,
        "parent_key": new.parent_key,
        "origin_id": origin.run if origin else None,
        "origin_reuse": str(origin.reuse) if origin else None,
        "origin_key": origin.fork_key if origin else None,
        "created_at": new.created_at,
        "lineage": budgets.lineage,
        "levels": codec.text(budgets),
        "owner": budgets.user and budgets.user.name,
        "client": new.request and new.request.client,
        "request_key": new.request and new.request.key and codec.checked(new.request.key),
        "request_digest": new.request and new.request.digest,
        "request_id": new.request and new.request.id and codec.clean(new.request.id),
        "rules": new.rules,
    }


def restore_parameters(run: Run, codec: Codec) -> dict[str, Any]:
    """Spell a run from elsewhere as parameters; it comes without driver and events."""
    origin = run.origin
    return {
        "id": run.id,
        "name": run.name,
        "workload": run.workload,
        "spec": codec.text(run.spec),
        "state": str(run.state),
        "ended_reason": run.ended_reason,
        "error": codec.optional(run.error),
        "result": codec.optional(run.result),
        "tags": codec.text(run.tags),
        "seed": run.seed,
        "timeout": run.timeout,
        "concurrency": run.concurrency,
        "active": run.active,
        "dispatch": None if run.dispatch == LIVE else codec.text(run.dispatch),
        "parent_id": run.parent,
        "parent_key": run.parent_key,
        "origin_id": origin.run if origin else None,
        "origin_reuse": str(origin.reuse) if origin else None,
        "origin_key": origin.fork_key if origin else None,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "calls_total": run.calls.total,
        "calls_done": run.calls.done,
        "calls_failed": run.calls.failed,
        "calls_uncertain": run.calls.uncertain,
        "calls_reused": run.calls.reused,
        "lineage": run.budgets and run.budgets.lineage,
        "levels": codec.optional(run.budgets),
        "owner": run.owner,
        "rules": run.rules,
    }


def run_of(row: Row) -> Run:
    """Read a run from its row joined with its budget and that of its lineage."""
    return Run(
        id=RunId(row["id"]),
        workload=row["workload"],
        spec=read(row["spec"]),
        state=RunState(row["state"]),
        created_at=row["created_at"],
        lease=_lease_of(row),
        name=row["name"],
        tags=tuple(read(row["tags"])),
        seed=row["seed"],
        cap=row["cap"],
        timeout=row["timeout"],
        concurrency=row["concurrency"],
        active=row["active"],
        submitted=bool(row["submitted"]),
        dispatch=LIVE if row["dispatch"] is None else _dispatch_decoder.decode(row["dispatch"]),
        parent=row["parent_id"],
        parent_key=row["parent_key"],
        origin=_origin_of(row),
        ended_reason=row["ended_reason"],
        error=read(row["error"]),
        result=read(row["result"]),
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        cancel_requested=bool(row["cancel_requested"]),
        last_seq=row["last_seq"],
        calls=_counts_of(row),
        spent=spent_of(row),
        total=spent_of(row, "total_"),
        budgets=None if row["levels"] is None else _budgets_decoder.decode(row["levels"]),
        request=_request_of(row),
        continued_by=row["continued_by"],
        rules=row["rules"] or FIRST_RULES,
    )


def _request_of(row: Row) -> StartRequest | None:
    if row["client"] is None:
        return None
    return StartRequest(
        client=row["client"], key=row["request_key"], digest=row["request_digest"], id=row["request_id"]
    )


def _lease_of(row: Row) -> Lease:
    driver = None
    if row["driver_pid"] is not None:
        driver = Driver(host=row["driver_host"], pid=row["driver_pid"], started=row["driver_started"])
    return Lease(epoch=row["epoch"], driver=driver, until=row["lease_until"])


def _origin_of(row: Row) -> Origin | None:
    if row["origin_id"] is None:
        return None
    return Origin(run=RunId(row["origin_id"]), reuse=Reuse(row["origin_reuse"]), fork_key=row["origin_key"])


def _counts_of(row: Row) -> CallCounts:
    return CallCounts(
        total=row["calls_total"],
        done=row["calls_done"],
        failed=row["calls_failed"],
        uncertain=row["calls_uncertain"],
        reused=row["calls_reused"],
    )


def spent_of(row: Row, prefix: str = "") -> Spent:
    """Read the money of a budget; a run without a budget row has spent nothing."""
    if row[f"{prefix}reserved"] is None:
        return Spent()
    return Spent(
        reserved=Microdollars(row[f"{prefix}reserved"]),
        billed=Microdollars(row[f"{prefix}billed"]),
        imputed=Microdollars(row[f"{prefix}imputed"]),
        uncertain=Microdollars(row[f"{prefix}uncertain"]),
    )


def entry_parameters(entry: Entry, codec: Codec) -> dict[str, Any]:
    """Spell a whole entry as parameters."""
    return {
        "run_id": entry.run,
        "key": entry.key,
        "kind": str(entry.kind),
        "state": str(entry.state),
        "digest": entry.digest,
        "agent": entry.agent,
        "attempts": entry.attempts,
        "request": codec.optional(entry.request),
        "outcome": codec.optional(entry.value if entry.reply is None else entry.reply),
        "error": codec.optional(entry.error),
        "reused_from": entry.reused_from,
        "opened_at": entry.opened_at,
        "settled_at": entry.settled_at,
    }


def entry_of(row: Row) -> Entry:
    """Read a journal entry."""
    outcome, is_call = row["outcome"], row["kind"] == EntryKind.CALL
    return Entry(
        run=RunId(row["run_id"]),
        key=row["key"],
        kind=EntryKind(row["kind"]),
        state=EntryState(row["state"]),
        digest=row["digest"],
        attempts=row["attempts"],
        agent=row["agent"],
        request=read(row["request"]),
        reply=_reply_of(outcome) if is_call and outcome is not None else None,
        value=None if is_call else read(outcome),
        error=read(row["error"]),
        reused_from=row["reused_from"],
        opened_at=row["opened_at"],
        settled_at=row["settled_at"],
    )


def _reply_of(text: str) -> Reply:
    try:
        return _reply_decoder.decode(text)
    except typed.DecodeError:  # half a surrogate pair, which only the standard library reads
        return typed.convert(json.loads(text), Reply)


def attempt_of(row: Row) -> Attempt:
    """Read an attempt."""
    return Attempt(
        key=row["key"],
        n=row["n"],
        state=AttemptState(row["state"]),
        reserved=Microdollars(row["reserved"]),
        cost=Microdollars(row["cost"]),
        lane=Lane(row["lane"]),
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        error=read(row["error"]),
        batch=row["batch_id"],
        live_cost=Microdollars(row["live_cost"]),
    )


def event_of(row: Row) -> Event:
    """Read an event."""
    return Event(run=RunId(row["run_id"]), seq=row["seq"], kind=row["kind"], at=row["at"], data=read(row["data"]))
