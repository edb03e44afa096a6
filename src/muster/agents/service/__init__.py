"""The user's own service over HTTP as an agent."""
