"""Rows of batches to values and back."""

from functools import lru_cache
from typing import NamedTuple

from muster.domain.batch import Batch, BatchEndpoint, BatchMember, BatchShare, BatchState, Plan, Saving, Tally, Tariff
from muster.domain.budget import Level
from muster.domain.canonical import JsonObject
from muster.domain.entry import AttemptId, AttemptState
from muster.domain.ids import BatchId, RunId
from muster.domain.money import Microdollars
from muster.domain.run import Driver
from muster.store.codec import Codec, read
from muster.store.queries import Row
from muster.text import typed

PACKING = 1  # of zlib, for bodies and lines: the next step saves little and costs much

_STATES = {state.value: state for state in AttemptState}
_endpoint = typed.Decoder(BatchEndpoint)
_tariffs = typed.Decoder(dict[str, Tariff])


def plan_parameters(plan: Plan, codec: Codec) -> JsonObject:
    """Spell a new batch as parameters."""
    return {
        "id": plan.id,
        "desk": codec.text(plan.endpoint),
        "account": plan.endpoint.provider_account,
        "nonce": plan.nonce,
        "requests": len(plan.members),
        "bytes": plan.bytes,
        "tariffs": codec.text(plan.tariffs),
        "at": plan.at,
        "reserved": sum(member.opening.most for member in plan.members),
        "note": "its members and their money are stored; nothing has been sent",
    }


def restored_parameters(batch: Batch, codec: Codec) -> JsonObject:
    """Spell a batch from elsewhere as parameters; only the provider's part of its story comes along."""
    return {
        "id": batch.id,
        "desk": codec.text(batch.endpoint),
        "account": batch.endpoint.provider_account,
        "nonce": batch.nonce,
        "state": str(batch.state),
        "requests": batch.requests,
        "bytes": batch.bytes,
        "tariffs": codec.text(batch.tariffs),
        "provider_id": batch.provider_id,
        "created_at": batch.created_at,
        "sent_at": batch.sent_at,
        "submitted_at": batch.submitted_at,
        "ended_at": batch.ended_at,
        "note": "it came with a run from another store",
    }


def batch_parameters(batch: Batch, codec: Codec) -> JsonObject:
    """Spell what changes in a batch as parameters."""
    return {
        "id": batch.id,
        "epoch": batch.epoch,
        "state": str(batch.state),
        "provider_id": batch.provider_id,
        "file": batch.file,
        "sent_at": batch.sent_at,
        "submitted_at": batch.submitted_at,
        "ended_at": batch.ended_at,
        "collected_at": batch.collected_at,
        "adopted": int(batch.adopted),
        "rejected": codec.text(batch.rejected),
        "done": batch.done,
        "word": codec.clean(batch.word),
        "polled_at": batch.polled_at,
        "note": codec.clean(batch.note),
        "error": codec.optional(batch.error),
        "grace_until": batch.grace_until,
        "stalled": int(batch.stalled),
        "waits_for": batch.waits_for,
        "uploads": batch.uploads,
    }


def batch_of(row: Row) -> Batch:
    """Read a batch."""
    return Batch(
        id=BatchId(row["id"]),
        endpoint=_endpoint.decode(row["desk"]),
        state=BatchState(row["state"]),
        requests=row["requests"],
        bytes=row["bytes"],
        tariffs=_tariffs.decode(row["tariffs"]),
        created_at=row["created_at"],
        nonce=row["nonce"],
        provider_id=row["provider_id"],
        file=row["file"],
        sent_at=row["sent_at"],
        submitted_at=row["submitted_at"],
        ended_at=row["ended_at"],
        collected_at=row["collected_at"],
        cancel_requested=bool(row["cancel_requested"]),
        adopted=bool(row["adopted"]),
        rejected=tuple(read(row["rejected"])),
        done=row["done"],
        word=row["word"],
        polled_at=row["polled_at"],
        note=row["note"],
        error=read(row["error"]),
        reserved=Microdollars(row["reserved"]),
        cost=Microdollars(row["cost"]),
        live_cost=Microdollars(row["live_cost"]),
        tally=_tally_of(row),
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        driver=_driver_of(row),
        epoch=row["epoch"],
        lease_until=row["lease_until"],
        claimed_at=row["claimed_at"],
        by_hand=bool(row["by_hand"]),
        grace_until=row["grace_until"],
        stalled=bool(row["stalled"]),
        waits_for=row["waits_for"],
        uploads=row["uploads"],
    )


def _tally_of(row: Row) -> Tally:
    return Tally(
        succeeded=row["succeeded"],
        errored=row["errored"],
        canceled=row["canceled"],
        expired=row["expired"],
        uncertain=row["uncertain"],
    )


def _driver_of(row: Row) -> Driver | None:
    if row["driver_pid"] is None:
        return None
    return Driver(host=row["driver_host"], pid=row["driver_pid"], started=row["driver_started"])


class MemberRow(NamedTuple):
    """A row of the queries of members; its names are their columns, in their order."""

    run_id: RunId
    key: str
    n: int
    epoch: int
    place: int
    state: str
    agent: str
    reserved: Microdollars
    levels: str
    size: int
    max_tokens: int
    position: int | None


def member_of(row: MemberRow) -> BatchMember:
    """Read a member."""
    # Without keywords, which cost as much again: a page of results has thousands of members.
    return BatchMember(
        AttemptId(row.run_id, row.key, row.n, row.epoch),
        row.place,
        _STATES[row.state],
        row.agent,
        row.reserved,
        _levels_of(row.levels),
        row.size,
        row.max_tokens,
        row.position,
    )


@lru_cache(maxsize=1024)
def _levels_of(text: str) -> tuple[Level, ...]:
    """Read the budgets above a call; most members of a batch have the same."""
    return tuple(Level(id=level) for level in text.split())


def share_of(row: Row) -> BatchShare:
    """Read what some calls had in a batch."""
    return BatchShare(
        batch=BatchId(row["batch_id"]),
        provider_id=row["provider_id"],
        calls=row["calls"],
        cost=Microdollars(int(row["cost"])),
        live_cost=Microdollars(int(row["live_cost"])),
        parked=row["parked"] or 0,
    )


def saving_of(row: Row | None) -> Saving:
    """Read what a run's batches and the tier flex cost."""
    if row is None:
        return Saving()
    return Saving(
        batches=row["batches"],
        cost=Microdollars(int(row["cost"])),
        live_cost=Microdollars(int(row["live_cost"])),
        parked=row["parked"],
        flex_calls=row["flex_calls"],
        flex_cost=Microdollars(int(row["flex_cost"])),
        flex_live_cost=Microdollars(int(row["flex_live_cost"])),
    )
