"""Reports by the name of their format."""

import io
from html import unescape
from pathlib import Path

import pytest

from muster.domain.errors import BadArgument
from muster.verify.findings.journal import Ending
from muster.verify.reports.formats import WRITERS, report_of
from tests.verify.reports.house import Story, agent, bad, finding, model, opened, rejected, wave


async def test_an_unknown_format_is_named_with_those_there_are(tmp_path: Path) -> None:
    async with opened(tmp_path, bad()) as (waves, report):
        with pytest.raises(
            BadArgument, match=r"the format of a report must be one of markdown, json, sarif, junit, not 'pdf'"
        ):
            await report_of(waves, report).write("pdf", io.StringIO())


@pytest.mark.parametrize("name", list(WRITERS))
async def test_a_report_is_the_same_twice_and_holds_no_secret(tmp_path: Path, name: str) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    leak = finding(f"it says {secret}", fix=secret, replacement=secret, rule=secret)
    failed = agent(
        "leaky", 1, Ending.FAILED, [leak], why=secret, rejected=(rejected(secret),), failures=(f"stderr: {secret}",)
    )
    story = Story(verifiers=[model("leaky")], waves=[wave(1, failed)], name=f"run with {secret}")
    async with opened(tmp_path, story) as (waves, report):
        first, second = io.StringIO(), io.StringIO()
        for out in (first, second):
            await report_of(waves, report).write(name, out)
    assert first.getvalue() == second.getvalue()
    assert "a1B2" not in unescape(first.getvalue())
    assert "leaky" in first.getvalue()
