"""A real node image, made from Debian packages and Go modules only; docs/node-image.md."""
