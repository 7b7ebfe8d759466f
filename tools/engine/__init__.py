"""A Docker engine, and small images, for the tests of the Docker provider; docs/node-image.md.

Runs before there is a virtual environment: standard library only.
"""
