"""Behavioural test suites: format, checks, judges, workload, reports, evidence."""
