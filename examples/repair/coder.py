"""Stands for a coding agent: reads which lines are wrong, and repairs those that it knows how to repair."""

import re
import sys
from pathlib import Path

prompt = sys.stdin.read()
for name, line in re.findall(r"^\d+\. (\S+):(\d+) ", prompt, re.MULTILINE):
    path = Path(name)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[int(line) - 1] = lines[int(line) - 1].replace("eval(", "ast.literal_eval(")
    if "import ast\n" not in lines:
        lines.insert(1, "\nimport ast\n")
    path.write_text("".join(lines), encoding="utf-8")
print("repaired what was found")
