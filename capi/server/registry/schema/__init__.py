"""OpenAPI v3 schemas of resources: `compiled` is the way in; the other modules are its parts."""
