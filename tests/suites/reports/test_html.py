"""The page as a file: everything inside it, nothing that could run, and of a large run what is worth a look."""

import json
import re
from pathlib import Path
from typing import Any

from muster.domain.case import Status
from muster.suites.reports.html import ALL_UP_TO, embedded, policy
from tests.suites.reports.house import Story, called, case, result, written


def data_of(text: str) -> dict[str, Any]:
    """Read the data out of a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


async def test_a_megabyte_of_answer_is_cut_and_says_so(tmp_path: Path) -> None:
    story = Story(cases=[case("a")], results=[result("a")], calls=called("a", "x" * 1_000_000))
    text = await written(tmp_path, story, "html")
    assert len(text) < 200_000
    assert "(950,000 more characters)" in data_of(text)["rows"][0]["epochs"][0]["talk"][-1]["text"]


async def test_of_a_large_run_failures_and_a_sample_are_on_the_page(tmp_path: Path) -> None:
    names = [f"case-{number}" for number in range(ALL_UP_TO + 100)]
    bad = {"case-7", "case-2011"}
    results = [result(name, Status.FAILED if name in bad else Status.PASSED, keys=()) for name in names]
    data = data_of(await written(tmp_path, Story(cases=[case(name) for name in names], results=results), "html"))
    shown = {row["case"] for row in data["rows"]}
    assert bad < shown
    assert len(shown) == 2 + 420
    assert "This run has 2,100 rows, too many for one page. Here are 422: 2 of 2 that did not pass" in data["shown"]
    assert data["counts"] == {"passed": 2098, "failed": 2}


def test_data_cannot_leave_its_element() -> None:
    value = "</script><!-- ]]> \u2028 \u2029 & <script>"
    spelled = embedded({"x": value})
    assert not set("<>&\u2028\u2029") & set(spelled)
    assert json.loads(spelled) == {"x": value}


async def test_only_the_page_s_own_style_and_script_are_allowed(tmp_path: Path) -> None:
    text = await written(tmp_path, Story(cases=[case("a")], results=[result("a")]), "html")
    style, script = (re.search(f"<{name}>(.*?)</{name}>", text, re.DOTALL) for name in ("style", "script"))
    assert style is not None
    assert script is not None
    allowed = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert allowed is not None
    assert allowed[1] == policy(style[1], script[1])
    assert "default-src 'none'" in allowed[1]
    assert "unsafe" not in allowed[1]
    assert not re.search(r"""(?:src|href)=["'](?!#)""", text)
