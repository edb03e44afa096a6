"""Calls in batches: gathered, sent, resolved, followed, collected."""
