"""What is remembered: runs, journal, ledger and events, behind one seam."""
