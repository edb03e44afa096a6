"""Findings without anybody to ask: how they are read, merged and counted, and what a wave comes to by them. Pure."""
