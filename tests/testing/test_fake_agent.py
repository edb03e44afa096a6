"""The fake agent of tests: what it can be shown."""

from typing import Any

import pytest

import muster
from muster.testing import FakeAgent, MusterTest
from tests.pictures import pdf, png

IMAGE, TERMS = muster.image(png()), muster.document(pdf(), name="terms.pdf")


@muster.workload("a picture of a test")
async def picture(ctx: muster.Context, spec: Any) -> str:
    shown = TERMS if spec["document"] else IMAGE
    return (await ctx.call("desk", ["What is this?", shown], key="look")).text


def test_a_fake_agent_is_shown_what_it_can_see(muster_test: MusterTest) -> None:
    agent = muster_test.agents["desk"] = FakeAgent({"What": "a dot"}, media=["image"])
    assert muster_test.run(picture, {"document": False}) == "a dot"
    assert agent.asked[0].media == (IMAGE,)  # with its bytes
    with pytest.raises(muster.MusterError, match="cannot be shown documents"):
        muster_test.run(picture, {"document": True})


def test_a_fake_agent_sees_nothing_unless_it_says_so(muster_test: MusterTest) -> None:
    muster_test.agents["desk"] = FakeAgent("never")
    with pytest.raises(muster.MusterError, match="cannot be shown images"):
        muster_test.run(picture, {"document": False})
    with pytest.raises(muster.BadArgument, match="media must be image or document, not 'video'"):
        FakeAgent("never", media=["video"])
