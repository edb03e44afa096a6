"""Commands about verifications."""
