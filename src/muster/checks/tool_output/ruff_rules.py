"""How bad a rule of ruff's is that was broken. Plainly: what can break or endanger a program, what can mislead, looks.

| severity | rules |
|---|---|
| high | a syntax error, E9, F5 to F7, F82 (pyflakes: wrong formats, misplaced statements, undefined names), PLE, S |
| low | how it looks: E1 to E5, W, D, I, N, Q, COM, ERA, ANN, FIX, TD, CPY, UP |
| medium | every other rule |

Whoever wants none of them says `total == 0`.
"""

import re

from muster.domain.finding import Severity

_CODE = re.compile(r"([A-Z]+)(\d+)")
_HIGH = ("E9", "F5", "F6", "F7", "F82", "PLE", "S")
_LOW = ("E1", "E2", "E3", "E4", "E5", "W", "D", "I", "N", "Q", "COM", "ERA", "ANN", "FIX", "TD", "CPY", "UP")


def severity_of(code: str) -> Severity:
    """Give the severity of a rule by its code; what has none is a syntax error."""
    found = _CODE.fullmatch(code)
    if found is None or _is_among(found, _HIGH):
        return Severity.HIGH
    return Severity.LOW if _is_among(found, _LOW) else Severity.MEDIUM


def _is_among(code: re.Match[str], prefixes: tuple[str, ...]) -> bool:
    """Whether a code begins with a prefix; S is no prefix of SIM."""
    letters, digits = code.groups()
    parts = (re.fullmatch(r"([A-Z]+)(\d*)", prefix) for prefix in prefixes)
    return any(part is not None and part[1] == letters and digits.startswith(part[2]) for part in parts)
