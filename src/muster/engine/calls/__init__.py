"""The call path: what every call to an agent passes through."""
