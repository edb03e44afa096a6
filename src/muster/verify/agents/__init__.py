"""What looks at files: models and checkers, what they are asked and what they answer."""
