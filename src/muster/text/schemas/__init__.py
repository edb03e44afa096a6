"""JSON Schema: whether answers have the shape that was asked for, within limits of time and memory."""
