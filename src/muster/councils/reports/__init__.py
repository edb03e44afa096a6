"""Reports of councils: JSON, Markdown and one HTML file."""
