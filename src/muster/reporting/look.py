"""The colours that every page has, light and dark: reports in one file, and the page of the server."""

from importlib.resources import files

TOKENS = (files("muster.reporting") / "tokens.css").read_text(encoding="utf-8")
