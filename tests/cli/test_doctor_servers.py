"""What `muster doctor` and a worker say of the servers that a fleet shares: PostgreSQL and Redis."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.redis_server import RedisServer, running_redis

from .shell import Shell


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with running_redis(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def empty_database(postgres: str) -> Iterator[str]:
    """Make a database without tables and return its address."""
    name, folder = f"bare_{uuid.uuid4().hex}", quote(str(conninfo_to_dict(postgres)["host"]), safe="")
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}".encode())
    yield f"postgresql:///{name}?host={folder}&user=muster"
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def found(shell: Shell, subject: str) -> tuple[str, str]:
    """Return what the doctor says of one subject."""
    findings = shell.muster("doctor", "--json").envelope()["data"]["findings"]
    (one,) = [finding for finding in findings if finding["subject"] == subject]
    return one["state"], one["words"]


def test_the_doctor_names_the_version_of_a_database(shell: Shell, database_url: str) -> None:
    shell.variables["MUSTER_DATABASE_URL"] = database_url
    state, words = found(shell, "store")
    assert state == "ok"
    assert "can be used: " in words
    assert "PostgreSQL 1" in words


def test_the_doctor_makes_no_tables_and_says_that_there_are_none(shell: Shell, empty_database: str) -> None:
    shell.variables["MUSTER_DATABASE_URL"] = empty_database
    shell.write("muster.toml", '[agents.a]\nkind = "program"\ncommand = ["cat"]\n')
    for _ in range(2):
        state, words = found(shell, "store")
        assert state == "ok"
        assert "has no tables yet (PostgreSQL 1" in words
    assert found(shell, "agent") == ("ok", "a is configured (its program was found, not called)")


def test_the_doctor_finds_a_database_that_cannot_be_reached(shell: Shell, tmp_path: Path) -> None:
    shell.variables["MUSTER_DATABASE_URL"] = f"postgresql://me:sesame@/muster?host={quote(str(tmp_path), safe='')}"
    result = shell.muster("doctor")
    assert result.code == 3
    assert "✗ store " in result.out
    assert "sesame" not in result.out + result.err


def test_the_doctor_asks_the_server_of_the_queue(shell: Shell, redis: RedisServer) -> None:
    shell.variables["REDIS_URL"] = redis.url
    state, words = found(shell, "queue")
    assert state == "ok"
    assert words.startswith("the Redis server of REDIS_URL answers: version ")
    redis.tell("CONFIG SET maxmemory-policy allkeys-lru")
    state, words = found(shell, "queue")
    assert state == "note"
    assert "maxmemory-policy allkeys-lru: it may throw jobs away" in words
    redis.kill()
    assert shell.muster("doctor").code == 3
    assert found(shell, "queue")[0] == "broken"


def test_a_worker_warns_once_of_a_server_that_throws_jobs_away(shell: Shell, redis: RedisServer) -> None:
    shell.variables["REDIS_URL"] = redis.url
    assert "maxmemory-policy" not in shell.muster("worker", "--until-idle").err
    redis.tell("CONFIG SET maxmemory-policy allkeys-lru")
    said = shell.muster("worker", "--until-idle").err
    assert said.count("maxmemory-policy of the Redis server of REDIS_URL is allkeys-lru") == 1
