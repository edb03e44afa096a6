"""A batch that lacks one answer: HTTP, metrics, health and the page say so, why, and what to do about it."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.api.server import Project, Server
from tests.rehearsal import ForkedRehearsal

from .operations import ask_in_batch, provider

LOSES_ONE = {"script": [{"fault": "missing", "op": "member", "text": "question 0", "times": "always"}]}
WHY = "its results lack 1 answer; they are fetched again"
RESUBMIT = "muster batch reconcile --resubmit"


@pytest.fixture(scope="module")
def stalled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    """A server with a run whose batch does not get on."""
    with ForkedRehearsal(faults=LOSES_ONE) as lossy:
        project = Project(tmp_path_factory.mktemp("stalled"), {"REHEARSAL_KEY": "rehearsal"})
        project.declare(provider("lossy", lossy))
        with project.serve() as server:
            (run,) = ask_in_batch(server, "lossy")
            while not any(batch["stalled"] for batch in server.get("/api/batches").json["batches"]):
                server.get(f"/api/runs/{run}/events?after=0&wait=1")
            yield server, run


def test_every_answer_of_the_server_says_what_waits_and_what_to_do(stalled: tuple[Server, str]) -> None:
    server, run = stalled
    (listed,) = server.get("/api/batches").json["batches"]
    shown = server.get(f"/api/batches/{listed['id']}").json
    (of_run,) = server.get(f"/api/runs/{run}").json["batches"]
    (of_list,) = server.get("/api/runs").json["runs"][0]["batches"]
    for batch in (listed, shown, of_run, of_list):
        assert (batch["state"], batch["stalled"], batch["why"]) == ("ended", True, WHY)
        assert any(RESUBMIT in way for way in batch["next"])
    health = server.get("/healthz")
    assert (health.status, health.json["status"]) == (200, "attention")
    assert (health.json["batches_stalled"], health.json["next"]) == ({"ended": 1}, "muster batch list")
    assert 'muster_batches_stalled{state="ended"} 1' in server.get("/metrics").body.decode()


def test_the_page_says_it_of_the_batch_and_of_its_run(look: Any, stalled: tuple[Server, str]) -> None:
    server, run = stalled
    page = look(server, "batches").page
    expect(page.get_by_role("table", name="Batches").get_by_role("row").nth(1)).to_contain_text(WHY)
    (batch,) = server.get("/api/batches").json["batches"]
    for place in (f"batches/{batch['id']}", f"runs/{run}"):
        notice = look(server, place).page.get_by_role("status").filter(has_text=WHY)
        expect(notice).to_contain_text(RESUBMIT)
    rows = look(server, "runs").page.get_by_role("table", name="Runs").get_by_role("row")
    expect(rows.nth(1)).to_contain_text(f"waits for batch {batch['id']}: {WHY}")
