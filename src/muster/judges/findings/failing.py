"""How a failure is told that nobody but this room can tell: its code, and how long its words may be."""

UNPARSED = "unparsed"
LONGEST_FAILURE = 2_000  # characters
