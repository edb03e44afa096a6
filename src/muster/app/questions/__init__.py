"""Use cases of single questions."""
