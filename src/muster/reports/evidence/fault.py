"""Why an archive is not valid."""


class Fault(Exception):
    """Something in an archive is not as it was signed; never leaves this room."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")
        self.where, self.what = where, what
