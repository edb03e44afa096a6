"""`muster demo`."""
