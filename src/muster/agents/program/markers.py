"""The words with which a program of the exec protocol may show where its answer is."""

from muster.domain.canonical import Json
from muster.shapes.json_search import Fits, find

START = "___NSED_START___"
END = "___NSED_END___"  # for people: where the answer ends is for the decoder to say


def find_marked(text: str, fits: Fits) -> dict[str, Json] | None:
    """Give the last object that fits, of those that are marked if there are any."""
    return find(text, fits, START)
