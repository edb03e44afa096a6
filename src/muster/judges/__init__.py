"""How good it was: judges that are models or commands, asked through the context; what they say is read purely."""
