"""The command line: one file per group of commands; everything heavy is imported inside them."""
