"""Secrets in texts: their forms, their names, and how they are taken out."""
