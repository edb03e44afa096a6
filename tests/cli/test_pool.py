"""`muster task`, `muster pool` and `muster fan-out` as people type them."""

import pytest

from .shell import Shell

TOML = '[pool]\nslots = 2\nagent = "sim/echo"\n\n[[slots]]\nname = "coder"\nrole = "writer"\n'


@pytest.fixture
def pool(shell: Shell) -> Shell:
    (shell.folder / "muster.toml").write_text(TOML)
    return shell


def test_a_task_is_submitted_done_reviewed_and_shown(pool: Shell) -> None:
    submitted = pool.muster("task", "submit", "hello", "--review", "--tag", "x", "--json").data()
    assert (submitted["state"], submitted["tags"]) == ("pending", ["x"])
    assert "muster pool start" in pool.muster("task", "submit", "other").out
    started = pool.muster("pool", "start", "--until-idle", "--json").data()
    assert started["tasks"] | {"pending_review": 1, "completed": 1} == started["tasks"]
    shown = pool.muster("task", "result", submitted["id"])
    assert (shown.code, shown.out) == (0, "hello\n")
    assert f"muster task approve {submitted['id']}" in shown.err
    assert pool.muster("task", "reject", submitted["id"], "--feedback", "shorter").code == 0
    refused = pool.muster("task", "approve", submitted["id"])
    assert (refused.code, "is pending; only a task in pending_review" in refused.err) == (4, True)
    pool.muster("pool", "start", "--until-idle")
    assert pool.muster("task", "approve", submitted["id"]).code == 0
    pool.muster("pool", "start", "--until-idle")
    done = pool.muster("task", "result", submitted["id"], "--json").data()
    assert (done["state"], done["rejection_count"], done["slot"], done["success"]) == ("completed", 1, "coder", True)
    assert [task["state"] for task in pool.muster("task", "list", "--json").data()] == ["completed", "completed"]


def test_a_task_is_done_at_once_where_nobody_drives_the_pool(pool: Shell) -> None:
    done = pool.muster("task", "run", "now", "--slot", "coder")
    assert (done.code, done.out) == (0, "now\n")
    failed = pool.muster("task", "run", "x", "--agent", "sim/fail")
    assert (failed.code, failed.out) == (1, "")
    assert "muster task retry" in failed.err
    assert pool.muster("task", "run", "x", "--agent", "sim/fail", "--json").error()["code"] == "invalid_request"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("task", "result", "nothing"), 5, "not found"),
        (("task", "submit", " "), 2, "empty"),
        (("task", "submit", "x", "--agent", "nobody/at-all"), 3, "unknown agent"),
        (("task", "submit", "x", "--slot", "nobody"), 2, "no slot of the pool fits"),
        (("task", "submit", "x", "--effort", "high"), 3, "has no setting 'effort'"),
        (("task", "submit", "x", "--budget", "much"), 2, "not an amount"),
        (("task", "list", "--state", "happy"), 2, "--state must be one of"),
        (("task", "claim", "nobody"), 5, "slot 'nobody' not found"),
        (("task", "change", "x"), 2, "nothing to change"),
        (("pool", "scale", "99"), 2, "max_slots"),
        (("pool", "context", "get", "nothing"), 5, "no shared text"),
        (("pool", "message", "send", "nobody", "hi"), 5, "slot 'nobody' not found"),
        (("fan-out", "nothing.yaml"), 5, "no such file"),
    ],
)
def test_what_cannot_be_done_is_told_plainly(pool: Shell, words: tuple[str, ...], code: int, told: str) -> None:
    result = pool.muster(*words)
    assert (result.code, told in result.err) == (code, True), result.err


def test_slots_are_scaled_drained_and_told_things(pool: Shell) -> None:
    assert len(pool.muster("pool", "scale", "3", "--json").data()) == 3
    assert [slot["name"] for slot in pool.muster("pool", "slots", "--role", "writer", "--json").data()] == ["coder"]
    assert pool.muster("pool", "context", "set", "goal", "ship it").code == 0
    assert pool.muster("pool", "context", "get", "goal").out == "ship it\n"
    assert pool.muster("pool", "message", "send", "coder", "hi").code == 0
    assert pool.muster("pool", "message", "count", "coder").out == "1\n"
    assert "hi" in pool.muster("pool", "message", "peek", "coder").out
    assert pool.muster("pool", "context", "delete", "goal").code == 0
    assert pool.muster("pool", "context", "list", "--json").data() == {}
    drained = pool.muster("pool", "drain", "--timeout", "0", "--json").data()
    assert (drained["slots"]["stopped"], drained["draining"]) == (3, True)
    refused = pool.muster("task", "submit", "x")
    assert (refused.code, "draining" in refused.err) == (4, True)


def test_a_fan_out_prints_results_in_the_order_of_its_prompts(pool: Shell) -> None:
    (pool.folder / "many.yaml").write_text('prompts: ["one", "two"]\n')
    found = pool.muster("fan-out", "many.yaml", "--json").data()
    assert [task["output"] for task in found["results"]] == ["one", "two"]
    (pool.folder / "most.yaml").write_text(f"prompts: {[str(number) for number in range(51)]}\n")
    refused = pool.muster("fan-out", "most.yaml")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    metrics = pool.muster("pool", "metrics", "--json").data()
    assert (metrics["tasks"], metrics["states"]["completed"]) == (2, 2)
