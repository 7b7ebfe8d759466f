"""Log lines on standard error: time, level, what, and the data that came with it."""

import logging
import sys
from datetime import UTC, datetime

_PLAIN = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {"message", "asctime", "taskName"}


class Lines(logging.Formatter):
    """`12:30:45.123 WARNING text key=value …`."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        extra = " ".join(f"{key}={value}" for key, value in record.__dict__.items() if key not in _PLAIN)
        line = f"{moment} {record.levelname} {record.getMessage()} {extra}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def to_stderr(level: int) -> None:
    """Log from `level` up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
