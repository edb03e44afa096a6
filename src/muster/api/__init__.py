"""The HTTP edge: requests become use cases of `app`, their values JSON. It decides nothing by itself."""
