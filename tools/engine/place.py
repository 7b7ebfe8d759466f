"""Where everything of one checkout's engine is. Each name follows from the work folder, so two checkouts never meet."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True)
class Place:
    """The work folder, kept between runs, and a short name of it."""

    folder: Path
    name: str
    """Of the network namespace and of the folder below /run."""

    @classmethod
    def here(cls) -> "Place":
        """ENGINE_DIR, or `.engine` in this checkout."""
        folder = Path(os.environ.get("ENGINE_DIR") or ROOT / ".engine").resolve()
        return cls(folder, f"capi-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}")

    @property
    def cache(self) -> Path:
        """Of the machine, like Go's build cache: what costs minutes and is the same for every checkout. ENGINE_CACHE overrides.

        Names in it carry a digest of what made them, and files appear whole, so checkouts may share it at the same time.
        """
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = Path(os.environ.get("ENGINE_CACHE") or home / "capi-engine").resolve()
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def run(self) -> Path:
        """What ends with the engine. Not in the work folder: a socket's path has at most 107 bytes."""
        return Path("/run") / self.name

    @property
    def host(self) -> str:
        """DOCKER_HOST of this engine."""
        return f"unix://{self.run / 'docker.sock'}"

    @property
    def netns(self) -> Path:
        """File of the network namespace."""
        return Path("/run/netns") / self.name

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone in this work folder: a second command waits until the first is done."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def log(self, name: str) -> Path:
        """Log file of that name; its folder is made."""
        (self.folder / "log").mkdir(parents=True, exist_ok=True)
        return self.folder / "log" / f"{name}.log"
