"""What users write: suites and specs, validated, with the lines they stand on."""
