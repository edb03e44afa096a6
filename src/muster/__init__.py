"""Muster runs fleets of AI agents as durable work."""
