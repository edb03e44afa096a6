"""What the calls of a run leave in the database: journal, ledger, settlements and events."""
