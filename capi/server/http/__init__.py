"""The HTTP front: an HTTP/1.1 listener that speaks `messages`, and the handler that turns requests into registry calls."""
