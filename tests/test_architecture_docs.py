"""The page on the architecture names files that are there, and the rooms that the test of rooms knows."""

import re
from pathlib import Path

from .test_rooms import ARROWS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "muster"


def test_every_file_that_is_named_is_there() -> None:
    named = {
        path
        for path in re.findall(r"`([\w/]+(?:\.py|/))`", PAGE)
        if path.split("/")[0] in ARROWS and "NAME" not in path
    }
    assert len(named) > 30
    assert {path for path in named if not (SOURCE / path).exists()} == set()


def test_every_room_is_named() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {room for room in rooms if f"{room}/" not in PAGE and f"`{room}`" not in PAGE} == set()
