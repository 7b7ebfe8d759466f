"""Exponential back-off with jitter: pure arithmetic, no waiting."""

import random
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays `base · factor^n` capped at `cap` seconds; the n-th is lengthened by up to `jitter` of itself."""

    base: float
    cap: float
    factor: float = 2.0
    jitter: float = 0.0

    def delay(self, failures: int) -> float:
        """Seconds to wait after that many failures in a row (0 = the first)."""
        exponent = min(failures, 64)  # beyond that every cap is reached; keeps the float finite
        plain = min(self.cap, self.base * self.factor**exponent)
        return plain * (1 + random.random() * self.jitter)


@dataclass(slots=True)
class Attempts:
    """Counts failures in a row for one thing that is tried again and again."""

    backoff: Backoff
    failures: int = field(default=0, init=False)

    def failed(self) -> float:
        """Note a failure; the seconds to wait before the next attempt."""
        delay = self.backoff.delay(self.failures)
        self.failures += 1
        return delay

    def succeeded(self) -> None:
        self.failures = 0
