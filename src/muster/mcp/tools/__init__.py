"""The tools of a coordinating agent, by what they are for."""
