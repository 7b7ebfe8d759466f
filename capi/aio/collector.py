"""Garbage collection for a process with large, long-lived caches.

Default thresholds walk every cached object again and again: decoding 10,000 objects takes five times as long, and a full
collection stops everything for over 100 ms. Objects that live as long as the process are taken out of sight instead.
"""

import gc

_THRESHOLDS = (100_000, 50, 1000)


def settle() -> None:
    """Freeze what exists and collect rarely from now on. Call once the caches are filled; affects the whole process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
