"""Commands about tasks, slots and the pool."""
