"""What an operator sees of Muster from outside: log lines, metrics and traces, made from what the engine tells."""
