"""Commands about runs, and `ask`."""
