"""Providers asked for foreign programs: their requests are passed on as they are, and their answers back."""
