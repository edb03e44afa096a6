"""The sections of muster.toml about `muster serve`: who may use it, what requests may name, and what it keeps."""

from pathlib import Path
from typing import Annotated, Literal

from muster.settings.sections import Amount, Count, Dollars, Strict
from muster.text.typed import Meta

Scope = Literal["read", "start", "review", "admin", "gateway"]
Days = Annotated[int, Meta(ge=0, le=36_500)]


class TokenSection(Strict, frozen=True, kw_only=True):
    """One of `[[tokens]]`: a user of the service; the secret stands in the variable that is named."""

    name: str
    secret_env: str
    scopes: tuple[Scope, ...] = ("read",)
    day_usd: Dollars | None = None  # what all runs of this user may cost in one UTC day


class ServeSection(Strict, frozen=True, kw_only=True):
    """`[serve]`: what requests may name, where they may come from, how many there may be, and what is kept."""

    models: tuple[str, ...] = ()  # that requests may name besides declared agents
    trusted_proxies: tuple[str, ...] = ()  # addresses or networks whose X-Forwarded-For counts
    allowed_hosts: tuple[str, ...] = ()  # names of this server besides localhost and its own address
    allowed_origins: tuple[str, ...] = ()  # of pages elsewhere that may use it
    keep_days: Days = 30  # finished runs with their events and idempotency keys; 0 keeps for ever
    runs: Count = 8  # driven at the same time
    battles: Count = 3  # of them
    jobs_per_client: Count = 3  # of them for one client address
    starts_per_minute: Count = 30  # for one client address
    connections: Count = 4_000  # open at the same time
    connections_per_client: Count = 2_000  # of them from one address that is no trusted proxy
    streams_per_client: Count = 1_500  # streams of events for one client address
    body_bytes: Count = 1_048_576
    body_secs: Amount = 30.0  # in which the whole body of a request must arrive


class HooksSection(Strict, frozen=True, kw_only=True):
    """`[hooks]`: what is told when a run ends or waits for a review: a command, or the address of a webhook."""

    on_end: tuple[str, ...] | str = ()
    on_review: tuple[str, ...] | str = ()


class StoreSection(Strict, frozen=True, kw_only=True):
    """`[store]`: the database of several machines; without one the store is a file in the folder of this machine."""

    url: str | None = None  # postgresql://USER@HOST:PORT/DATABASE; MUSTER_DATABASE_URL goes first


class LibrarySection(Strict, frozen=True, kw_only=True):
    """`[library]`: the files and folders of suites, chains and councils that requests may name."""

    paths: tuple[Path, ...] = ()
