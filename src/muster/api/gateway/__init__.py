"""The gateway at the edge: addresses and errors in the shapes of the providers."""
