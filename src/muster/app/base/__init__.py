"""What all parts of an open Muster stand on: what is opened once, and what belongs to no kind of work."""
