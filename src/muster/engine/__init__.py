"""What must not be lost: the call path and everything a run needs to survive."""
