"""The report as one HTML file that fetches nothing: page, style, script and data are all inside it."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import TextIO

from muster.reports.suite.page_rows import PageRows, embedded
from muster.reports.suite.page_values import head_json
from muster.reports.suite.summary import SuiteReport
from muster.reports.suite_run import SuiteRun

SCRIPTS = ("page_basics.js", "page_overview.js", "page_charts.js", "page_cases.js", "page_panel.js")


async def write_html(suite: SuiteRun, report: SuiteReport, out: TextIO) -> None:
    """Write the page; its rows are written one by one."""
    style = _asset("page.css")
    script = '"use strict";\n(() => {\n' + "\n".join(_asset(name) for name in SCRIPTS) + "\n})();"
    before, after = _asset("page.html").replace("@POLICY@", policy(style, script)).split("@DATA@")
    out.write(before.replace("@STYLE@", style))
    await _write_data(suite, report, out)
    out.write(after.replace("@SCRIPT@", script))


def policy(style: str, script: str) -> str:
    """Allow exactly this style and this script, and nothing from anywhere."""
    only = f"style-src {_named(style)}; script-src {_named(script)}"
    return f"default-src 'none'; {only}; base-uri 'none'; form-action 'none'"


def _named(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return (files("muster.reports.suite") / "page" / name).read_text(encoding="utf-8")


async def _write_data(suite: SuiteRun, report: SuiteReport, out: TextIO) -> None:
    out.write(embedded(head_json(report)).removesuffix("}") + ',"rows":[')
    rows, between = PageRows(suite, report), "\n"
    async for row in rows:
        out.write(between + embedded(row))
        between = ",\n"
    out.write(f'\n],"shown":{embedded(rows.told())}}}')
