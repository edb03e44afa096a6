"""The rules of a council: members and votes, anonymity, scoring, stopping, outcome. Pure."""
