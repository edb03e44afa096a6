"""How submitted runs reach the workers that drive them: out of the store, or announced through a queue."""
