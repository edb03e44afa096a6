"""Words that no command understands."""


class Misuse(Exception):
    """The words do not fit the command; `path` is the command that they were meant for, as it is typed."""

    def __init__(self, message: str, path: str = "muster") -> None:
        super().__init__(message)
        self.message, self.path = message, path

    def at(self, path: str) -> "Misuse":
        """Say for which command the words were meant."""
        return Misuse(self.message, path)
