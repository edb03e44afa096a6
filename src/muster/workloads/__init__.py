"""How agents are arranged: plain async functions over a context."""
