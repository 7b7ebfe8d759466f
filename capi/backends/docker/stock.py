"""Images on the engine: fetched once, however many machines wait for them, and saved once for machines that preload them."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeAlias

from capi.backends.docker.engine import Engine
from capi.backends.docker.images import NodeImage
from capi.kube.errors import BackendError

_PART = 1 << 20

Start: TypeAlias = Callable[[Coroutine[Any, Any, None]], object]
"""Runs work in the background; whoever owns it ends it."""


class ImageStock:
    """Images by reference. Archives are kept in `directory` until the process ends."""

    def __init__(self, engine: Engine, directory: Callable[[], Path], start: Start) -> None:
        self._engine = engine
        self._directory = directory
        self._start = start
        self._fetching: dict[str, asyncio.Future[None]] = {}
        self._present: set[str] = set()
        self._locks: dict[str, asyncio.Lock] = {}
        self.progress: dict[str, str] = {}
        """What the engine says of the images that it is fetching."""

    async def node(self, image: NodeImage) -> str:
        """The reference to run: as wanted if it is there; else its plain tag if that is there; else it is fetched."""
        if await self.present(image.reference):
            return image.reference
        if image.fallback and await self.present(image.fallback):
            return image.fallback
        await self.fetch(image.reference)
        return image.reference

    async def present(self, reference: str) -> bool:
        if reference not in self._present and await self._engine.has_image(reference):
            self._present.add(reference)
        return reference in self._present

    def missed(self, reference: str) -> None:
        """The engine has it no longer."""
        self._present.discard(reference)

    async def fetch(self, reference: str) -> None:
        """Pull it unless it is there. Raises BackendError with reason ImageNotFound for what no registry gives.

        It goes on when the caller is cancelled: an image may take longer than any one of those who wait for it may.
        """
        if await self.present(reference):
            return
        found = self._fetching.get(reference)
        if found is None:
            found = self._fetching[reference] = asyncio.get_running_loop().create_future()
            self._start(self._pull(reference, found))
        await asyncio.shield(found)

    async def _pull(self, reference: str, result: "asyncio.Future[None]") -> None:
        def note(said: str) -> None:
            self.progress[reference] = said

        try:
            await self._engine.pull(reference, note)
            self._present.add(reference)
            result.set_result(None)
        except BackendError as error:
            reason = "ImageNotFound" if error.reason == "EngineError" else error.reason
            result.set_exception(BackendError(error.message, reason=reason))
            result.exception()  # whoever waited may be gone
        finally:
            result.cancel()
            self._fetching.pop(reference, None)
            self.progress.pop(reference, None)

    async def archive(self, reference: str) -> Path:
        """A tar archive of an image of the engine, made by one stream for all who ask."""
        async with self._locks.setdefault(f"{reference} archive", asyncio.Lock()):
            path = self._directory() / f"{hashlib.sha256(reference.encode()).hexdigest()[:16]}.tar"
            if not path.exists():
                await self.fetch(reference)
                partial = path.with_suffix(".partial")
                await self._engine.save(reference, partial)
                partial.replace(path)
            return path


async def parts_of(path: Path) -> AsyncIterator[bytes]:
    """A file, piece by piece."""
    with path.open("rb") as file:
        while part := file.read(_PART):
            yield part
