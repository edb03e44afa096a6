"""Batches in the database: planned with their members and money, moved on, settled page by page."""
