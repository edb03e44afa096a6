"""The command `muster`, also as `python -m muster`."""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C while the modules are loaded ends the process, which has done nothing yet, without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from muster.cli.main import main  # after the signal

__all__ = ["main"]

if __name__ == "__main__":
    main()
