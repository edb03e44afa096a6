"""What a program wrote, as text for people and for the books."""

import json

from muster.domain.canonical import Json
from muster.shapes.json_search import readable

_SAMPLE = 200


def shown(value: Json) -> str:
    """Give a value as text: a text as it is, the texts of its blocks, or else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(each, dict) and "text" in each for each in value):
        return "".join(str(each["text"]) for each in value)
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deep to be shown)"


def sample_of(data: bytes) -> str:
    """Give the beginning of an output, for messages."""
    return readable(data).strip()[:_SAMPLE]
