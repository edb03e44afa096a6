"""Verification of code by agents in waves: declaration, files, findings, workload, reports."""
