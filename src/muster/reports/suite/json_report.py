"""The report as JSON: one object; its cases are written one by one, each on a line of its own.

schema, ok, verdict     what this is, whether the run is a success, and why or why not in words
run, environment        facts of the run, and the versions it was made with
counts, cases_total, results_expected, results_missing      how many ended how, and what was never done
warnings, subjects      what makes figures less sure; the figures of each subject, the best first
cases                   one for each case and subject, with `epochs`, each with checks, items, judgements and the answer

Names stay as long as the schema keeps its number; new ones may come.
"""

import json
from typing import TextIO

from muster.reports.suite.json_values import report_json, result_json, row_json
from muster.reports.suite.rows import CaseRow, CaseRows
from muster.reports.suite.spoken import Spoken
from muster.reports.suite.summary import SuiteReport
from muster.reports.suite_run import SuiteRun


async def write_json(suite: SuiteRun, report: SuiteReport, out: TextIO) -> None:
    """Write the whole report."""
    head = report_json(report) | {"environment": suite.environment}
    out.write(json.dumps(head, ensure_ascii=False, indent=2).removesuffix("\n}") + ',\n  "cases": [')
    spoken, between = Spoken(suite), "\n    "
    async for row in CaseRows(suite):
        out.write(between + await _case(spoken, row))
        between = ",\n    "
    out.write("\n  ]\n}\n")


async def _case(spoken: Spoken, row: CaseRow) -> str:
    epochs = [result_json(result) | {"answer": await spoken.answer(result)} for result in row.results]
    return json.dumps(row_json(row) | {"epochs": epochs}, ensure_ascii=False)
