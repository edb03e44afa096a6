"""What we can prove: files made from the store alone; nothing here calls a model."""
