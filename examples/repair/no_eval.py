"""A checker: every call of eval is a finding."""

import json
import sys
from pathlib import Path

findings = [
    {"file": name, "line": number, "severity": "high", "finding": "eval runs whatever it is given", "rule": "no-eval"}
    for name in sys.argv[1:]
    for number, line in enumerate(Path(name).read_text(encoding="utf-8").splitlines(), 1)
    if "eval(" in line.replace("literal_eval(", "")
]
print(json.dumps({"findings": findings}))
