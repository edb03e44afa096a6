"""verify.yaml: who verifies, in which wave, and what must hold."""
