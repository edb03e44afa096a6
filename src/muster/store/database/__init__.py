"""A store over any database: what differs is how it is read, written and looked after."""
