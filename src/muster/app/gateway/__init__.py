"""The gateway: requests of foreign programs, under budgets, in runs of their own."""
