"""`python -m tests.elsewhere ARGUMENTS`: the command `muster` on a machine with another name, or with a wrong clock.

`TEST_HOST` is the name of the machine: other processes cannot see whether its processes live. `TEST_CLOCK` is by how
many seconds its clock is wrong.
"""

import os
import socket
import time

from muster.__main__ import main


def move() -> None:
    """Give this process the name and the clock of another machine."""
    host, shift, right = os.environ.get("TEST_HOST"), float(os.environ.get("TEST_CLOCK", "0")), time.time
    if host:
        socket.gethostname = lambda: host
    if shift:
        time.time = lambda: right() + shift


if __name__ == "__main__":
    move()
    main()
