"""Scores an explanation by its sentences: how many there are, and how long they are. Needs nothing but Python."""

import json
import re
import sys

LONGEST, MOST = 15, 3

told = json.load(sys.stdin)
sentences = [part.split() for part in re.split(r"[.!?]+", told["result"]["output"]) if part.strip()]
longest = max(map(len, sentences), default=0)
scores = [
    {"rubric_id": "sentences", "score": float(0 < longest <= LONGEST), "rationale": f"the longest has {longest} words"},
    {"rubric_id": "length", "score": float(0 < len(sentences) <= MOST), "rationale": f"there are {len(sentences)}"},
]
json.dump({"scores": scores}, sys.stdout)
