"""What data looks like: JSON found in noise, JSONPath, JSON Schema. Pure; who answered it does not matter here."""
