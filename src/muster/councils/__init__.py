"""Councils: agents that propose, evaluate each other's proposals in rounds, and stop when they are convinced."""
