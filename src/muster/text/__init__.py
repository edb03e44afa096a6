"""Text and data of strangers, read strictly: YAML, TOML, JSON, patterns, expressions, secrets. Pure."""
