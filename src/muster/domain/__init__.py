"""What is said: values only, no input or output, nothing but the standard library."""
