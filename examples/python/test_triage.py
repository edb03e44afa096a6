"""Tests of a workload: with an agent that is made up, under a fake clock, and killed at every point."""

import pytest
from triage import TriageSpec, triage

import muster
from muster.testing import FakeAgent, MusterTest, kill_everywhere

SPEC = TriageSpec(("Where is my parcel?", "Your invoice is wrong."))


def agents() -> dict[str, FakeAgent]:
    labels = {"parcel": '{"label": "delivery", "urgent": true}', "invoice": '{"label": "billing", "urgent": false}'}
    return {"desk": FakeAgent(labels, cost_usd="0.01")}


def test_letters_are_sorted(muster_test: MusterTest) -> None:
    muster_test.agents.update(agents())
    assert [letter.label for letter in muster_test.run(triage, SPEC)] == ["delivery", "billing"]


def test_a_busy_provider_is_asked_again(muster_test: MusterTest) -> None:
    muster_test.agents["desk"] = desk = FakeAgent([muster.Overloaded("busy"), '{"label": "other", "urgent": false}'])
    assert muster_test.run(triage, TriageSpec(("Hello",)))[0].label == "other"  # the pause before it passes at once
    assert len(desk.asked) == 2


def test_a_budget_is_kept(muster_test: MusterTest) -> None:
    muster_test.agents.update(agents())
    with pytest.raises(muster.RunFailed, match="budget"):
        muster_test.run(triage, SPEC, budget_usd="0.01")


def test_it_survives_being_killed_anywhere() -> None:
    report = kill_everywhere(triage, SPEC, agents=agents, budget_usd="1.00")
    assert "call.answered:2" in report.kills  # after the second letter was answered, before that was stored
