"""Speed and memory as ratios inside one run; nothing here is a test."""
