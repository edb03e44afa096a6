"""What reports of all kinds are built with: files written whole, Markdown, SARIF and XML."""
