"""What people see: output, progress, tables."""
