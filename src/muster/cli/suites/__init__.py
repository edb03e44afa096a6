"""Commands about suites."""
