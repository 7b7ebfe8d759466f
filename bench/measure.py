"""What processes used, and what was asked of an API server."""

import json
import os
import time
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path


def since(moment: float) -> float:
    return round(time.monotonic() - moment, 2)


def usage(pid: int) -> tuple[float, float]:
    """Seconds of CPU and MiB of memory of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    status = Path(f"/proc/{pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), resident / 1024


def requests(log: Path, start: int, n: int) -> dict[str, dict[str, float]]:
    """Requests per Machine by client, verb and resource, from an audit log; reads of many and leases left out."""
    counted: Counter[tuple[str, str]] = Counter()
    with log.open("rb") as lines:
        lines.seek(start)
        for line in lines:
            with suppress(ValueError):
                entry = json.loads(line)
                ref = entry.get("objectRef") or {}
                if entry["verb"] not in ("watch", "list") and ref.get("resource") != "leases":
                    where = "/".join(filter(None, (ref.get("resource"), ref.get("subresource"))))
                    counted[(entry.get("userAgent", "").split("/")[0].split(" ")[0], f"{entry['verb']} {where}")] += 1
    result: dict[str, dict[str, float]] = defaultdict(dict)
    for (client, what), count in counted.most_common():
        if count >= max(3, n // 20):
            result[client][what] = round(count / n, 2)
    return dict(result)
