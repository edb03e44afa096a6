"""The providers' protocols as the rehearsal server speaks them."""
