"""Use cases of battles and scale tests. `Muster.battles`."""
