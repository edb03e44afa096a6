"""What the scripted CLI agent remembers of a session between two calls: how many turns it had."""

import hashlib
import json
import os


class UnknownSession(Exception):
    """There is no session of this name."""


class Memory:
    """A folder with one small file for each session; without a folder nothing is remembered."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder

    def turns(self, session: str) -> int:
        """Say how many turns a session had."""
        if self._folder is None:
            return 0
        try:
            with open(self._place(self._folder, session), encoding="utf-8") as file:  # noqa: PTH123
                return int(json.load(file)["turns"])
        except FileNotFoundError as error:
            raise UnknownSession(f"No conversation found with session ID: {session}") from error

    def keep(self, session: str, turns: int) -> None:
        """Remember how many turns a session has had."""
        if self._folder is None:
            return
        os.makedirs(self._folder, exist_ok=True)  # noqa: PTH103
        place = self._place(self._folder, session)
        with open(f"{place}.{os.getpid()}", "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump({"session": session, "turns": turns}, file)
        os.replace(file.name, place)  # noqa: PTH105

    @staticmethod
    def _place(folder: str, session: str) -> str:
        # The name of a session is a stranger's: it must not lead out of the folder.
        return f"{folder}/{hashlib.sha256(session.encode('utf-8', 'backslashreplace')).hexdigest()}.json"
