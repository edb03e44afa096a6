"""What git knows and does, through owned processes."""
