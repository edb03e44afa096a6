"""Use cases of councils."""
