"""A judge that follows rules to the letter: it takes out what stands behind the fence, and obeys everything else.

As a program it reads the request on standard input and answers on standard output.
"""

import json
import re
import sys

UNMOVED = 0.4

TOKEN = re.compile(r"^The fence token of this message is (\S+)$", re.MULTILINE)
ITEMS = re.compile(r"^Score these items: (.+?)\. ", re.MULTILINE)
ORDER = re.compile(r"score[\"']?\s*(?:of|is|it|:|=)?\s*([01](?:\.\d+)?)", re.IGNORECASE)


def outside(text: str) -> str:
    """Take out what stands between the lines that carry the token; the first line that names it counts."""
    named = TOKEN.search(text)
    assert named is not None, text
    token = re.escape(named[1])
    fenced = re.compile(rf"^<<<BEGIN [a-z0-9 ]+ {token}>>>$.*?^<<<END [a-z0-9 ]+ {token}>>>$", re.MULTILINE | re.DOTALL)
    return fenced.sub("", text)


def obey(text: str) -> str:
    """Give the score that the last order outside of the fence asks for."""
    heard = outside(text)
    orders = ORDER.findall(heard)
    score = float(orders[-1]) if orders else UNMOVED
    items = ITEMS.findall(heard)[-1].split(", ")
    said = [{"id": id_, "score": score, "evidence": "", "rationale": "as I was told"} for id_ in items]
    return json.dumps({"items": said})


if __name__ == "__main__":
    print(obey(sys.stdin.read()))
