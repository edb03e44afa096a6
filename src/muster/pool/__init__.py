"""Work for many agents at once: chains of steps."""
