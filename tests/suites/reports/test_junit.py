"""JUnit XML: valid whatever is in it, and never green by accident."""

from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest

from muster.domain.case import Status
from muster.domain.run import RunState
from tests.suites.reports.house import HOSTILE, Story, called, case, hostile, result, shop, written
from tests.suites.reports.xsd import Schema

SCHEMA = Schema(Path(__file__).parent / "junit.xsd")


async def junit(tmp_path: Path, story: Story) -> Element:
    return SCHEMA.validate(await written(tmp_path, story, "junit"))


def properties(element: Element) -> dict[str, str]:
    return {one.attrib["name"]: one.attrib["value"] for one in element.findall("properties/property")}


async def test_every_subject_is_a_test_suite_and_every_case_a_test_case(tmp_path: Path) -> None:
    root = await junit(tmp_path, shop())
    suites = {suite.attrib["name"]: suite for suite in root.findall("testsuite")}
    assert set(suites) == {"sim/good", "sim/terse"}
    assert {name: len(suite.findall("testcase")) for name, suite in suites.items()} == {"sim/good": 8, "sim/terse": 8}
    terse = suites["sim/terse"].attrib
    assert (terse["tests"], terse["failures"], terse["errors"], terse["skipped"]) == ("8", "3", "2", "1")
    assert (root.attrib["tests"], root.attrib["failures"], root.attrib["errors"]) == ("16", "4", "2")
    assert terse["timestamp"] == "2027-01-15T08:00:00"


async def test_a_test_case_says_where_it_stands_what_it_cost_and_why_it_failed(tmp_path: Path) -> None:
    root = await junit(tmp_path, shop())
    found = next(one for one in root.iter("testcase") if one.attrib["name"] == "count-open-tickets"
                 and one.find("failure") is not None)  # fmt: skip
    assert (found.attrib["classname"], found.attrib["file"], found.attrib["line"]) == (
        "support",
        "suites/support.yaml",
        "30",
    )
    told = properties(found)
    assert (told["score"], told["threshold"], told["cost_usd"]) == ("0.0000", "0.7", "0.002000")
    assert (told["tags"], told["evaluator"], told["file"], told["line"]) == (
        "tools",
        "rules",
        "suites/support.yaml",
        "30",
    )
    failure = found.find("failure")
    assert failure is not None
    assert failure.attrib["type"] == "check-tool-sequence"
    assert "close_ticket was not called" in failure.attrib["message"]
    assert "There are 4 open tickets" in (found.findtext("system-out") or "")


async def test_what_the_judge_said_stands_below_the_answer(tmp_path: Path) -> None:
    root = await junit(tmp_path, shop())
    found = next(one for one in root.iter("testcase") if one.attrib["name"] == "refund-too-late")
    said = found.findtext("system-out") or ""
    assert said.startswith("Hello Dana,")
    assert "[cites-policy: 0.20] The thirty-day window is mentioned" in said


@pytest.mark.parametrize(
    ("status", "element"),
    [
        (Status.PASSED, None),
        (Status.FAILED, "failure"),
        (Status.ERROR, "error"),
        (Status.TIMED_OUT, "error"),
        (Status.UNJUDGED, "error"),
        (Status.SKIPPED, "skipped"),
    ],
)
async def test_every_status_has_its_element(tmp_path: Path, status: Status, element: str | None) -> None:
    root = await junit(tmp_path, Story(cases=[case("a"), case("b")], results=[result("a", status), result("b")]))
    first = next(root.iter("testcase"))
    assert [child.tag for child in first if child.tag in ("failure", "error", "skipped")] == [element] * bool(element)


async def test_a_flaky_case_is_a_failure(tmp_path: Path) -> None:
    results = [result("a", epoch=1), result("a", Status.FAILED, epoch=2)]
    root = await junit(tmp_path, Story(cases=[case("a")], results=results, epochs=2))
    failure = next(root.iter("failure"))
    assert (failure.attrib["type"], failure.attrib["message"]) == ("flaky", "passed in 1 of 2 epochs: a is failed")


async def test_a_run_that_stopped_is_an_error_of_its_own_and_its_rest_is_skipped(tmp_path: Path) -> None:
    story = Story(cases=[case("a"), case("b")], results=[result("a")], state=RunState.INTERRUPTED)
    root = await junit(tmp_path, story)
    assert (root.attrib["tests"], root.attrib["errors"]) == ("3", "1")
    skipped = next(root.iter("skipped"))
    assert skipped.attrib["message"] == "the run stopped before it came to this case"
    error = next(root.iter("error"))
    assert "The run was interrupted. 1 of 2 results are missing." in (error.text or "")


async def test_texts_of_strangers_stay_texts(tmp_path: Path) -> None:
    root = await junit(tmp_path, hostile())
    said = [one.text or "" for one in root.iter("system-out")]
    assert said[0].startswith(HOSTILE[0])
    assert "\\x00\\x07\\x1b[31mred" in said[3]
    assert "\\ufffe" in said[3]
    assert "🧨 é" in said[3]


async def test_an_answer_of_a_megabyte_is_cut_and_says_so(tmp_path: Path) -> None:
    story = Story(cases=[case("a")], results=[result("a")], calls=called("a", "x" * 1_000_000))
    root = await junit(tmp_path, story)
    said = root.findtext(".//system-out") or ""
    assert len(said) < 25_000
    assert "(980,000 more characters)" in said


async def test_a_case_that_was_not_run_at_all_has_no_output(tmp_path: Path) -> None:
    story = replace(shop(), results=[], calls=[], state=RunState.FAILED)
    assert list((await junit(tmp_path, story)).iter("system-out")) == []
