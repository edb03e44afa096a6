"""A checker: every line with BAD in it is a finding."""

import json
import pathlib
import sys

BAD = {"severity": "medium", "finding": "there is BAD here", "fix": "take it out", "rule": "BAD"}

findings = [
    {"file": name, "line": number, **BAD}
    for name in sys.argv[1:]
    for number, line in enumerate(pathlib.Path(name).read_text().splitlines(), 1)
    if "BAD" in line
]
print(json.dumps({"findings": findings}))
