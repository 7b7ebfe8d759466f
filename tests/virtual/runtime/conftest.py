"""Event loops of this tier: every test has its own; there is no loop before the first one.

Without this, pytest-asyncio on Python 3.11 makes one by `get_event_loop()`, and never closes it.
"""

import asyncio

asyncio.set_event_loop(None)
