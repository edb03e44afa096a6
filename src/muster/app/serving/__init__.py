"""What a server needs besides the use cases: starts that are admitted and counted once, a library, hooks, retention."""
