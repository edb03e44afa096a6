"""A project as files and modules: what is in its folder, checked without running anything."""
