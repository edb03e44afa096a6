"""Any CLI agent: a command, the prompt by argument or input, and the answer as text, JSON or JSON lines."""
