"""Batches of both protocols: created, processed as time goes by, looked at, canceled, fetched."""
