"""Battles: two sides talk, judges decide whether a goal is reached, and many battles measure a prompt."""
