"""The report as JSON: one object in plain ASCII; findings are written one by one, each on a line of its own.

schema, ok, verdict, flaws, notes       what this is, whether it is a success, what speaks against it, what to know
partial, only_waves, only_agents        whether only a part was to be verified, and which
run, cost                               facts of the run; its price, and beside it that of live calls
counts                                  of the findings over all waves, with `total` and `rejected`
not_started, absent                     waves and agents of which there is no report
files, unseen, left_out, redactions     what was verified, seen by nobody, left out, and how many secrets taken out
cleared                                 markers that were removed
waves                                   each with `agents`: endings, scores, thresholds, and the findings of each
findings                                merged over all waves, the worst first, with `by`: who found it
rejected                                findings that cannot be, with `agent` and `why`

Names stay as long as the schema keeps its number; new ones may come.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from muster.domain.batch import BatchShare
from muster.domain.waves import WaveReport
from muster.reports.waves.json_values import (
    agent_json,
    finding_json,
    merged_json,
    rejected_json,
    report_json,
    share_json,
    wave_json,
)
from muster.reports.waves.run import WavesRun
from muster.reports.waves.summary import VerifyReport


async def write_json(waves: WavesRun, report: VerifyReport, out: TextIO) -> None:
    """Write the whole report."""
    out.write(json.dumps(report_json(report), indent=2).removesuffix("\n}"))
    _rows(out, "waves", (_wave(wave, report.batches.get(wave.wave, ())) for wave in report.waves))
    _rows(out, "findings", (merged_json(one) for one in report.merged))
    _rows(out, "rejected", (rejected_json(one) for one in report.rejected))
    out.write("\n}\n")


def _rows(out: TextIO, name: str, values: Iterable[dict[str, Any]]) -> None:
    out.write(f',\n  "{name}": [')
    between = "\n    "
    for value in values:
        out.write(between + json.dumps(value))
        between = ",\n    "
    out.write("\n  ]")


def _wave(wave: WaveReport, batches: Sequence[BatchShare]) -> dict[str, Any]:
    agents = [
        agent_json(agent) | {"findings": [finding_json(finding) for finding in agent.findings]} for agent in wave.agents
    ]
    return wave_json(wave) | {"batches": [share_json(one) for one in batches], "agents": agents}
