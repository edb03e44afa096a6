"""The parts of an open Muster that belong to no kind of work, and all of them together."""
