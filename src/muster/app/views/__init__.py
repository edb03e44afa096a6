"""The JSON shapes of values: the same for `--json`, HTTP and MCP."""
