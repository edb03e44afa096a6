"""What is verified and by whom: verify.yaml, the agents that are shipped, files, chunks and markers."""
