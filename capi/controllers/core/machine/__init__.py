"""Machine: one instance and its Node, from the infrastructure's first sign of life to their orderly end."""
