"""Documents in YAML and TOML whose parts know their lines."""
