"""How a process ended, in words. Pure."""

import signal


def exit_of(status: int) -> str:
    """Say what an exit status means: a code, or the signal that is its negative."""
    if status >= 0:
        return f"exited with code {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"
