"""The members of a council: what they are told and asked, and how their replies are read."""
