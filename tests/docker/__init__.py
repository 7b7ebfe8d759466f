"""Tests against a real Docker engine: `make e2e-docker`."""
