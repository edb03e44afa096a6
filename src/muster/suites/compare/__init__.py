"""Whether one suite run is better or worse than another."""
