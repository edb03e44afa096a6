"""Tools offered to agents through the Model Context Protocol: what is said, and a server on loopback."""
