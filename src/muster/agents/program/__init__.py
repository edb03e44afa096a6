"""Programs as agents: any command that reads standard input and answers on standard output."""
