"""Commands about batches."""
