"""The Model Context Protocol: Muster's use cases as tools and resources for an agent that coordinates others."""
