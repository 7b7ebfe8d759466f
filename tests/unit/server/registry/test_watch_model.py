"""Whatever happens, a client that lists, watches and resumes has in the end exactly what the server has."""

import random
from typing import Any

import orjson
import pytest

from capi.kube.types import Object
from capi.server.registry.interface import ListOptions
from capi.server.registry.watch import Watch
from tests.unit.server.registry.rig import Rig

NAMES = "abcdefgh"
SPACES = ("ns", "default")
SELECTIONS: tuple[tuple[str, dict[str, str]], ...] = (
    ("", {}),
    ("ns", {}),
    ("ns", {"label_selector": "x=1"}),
    ("", {"label_selector": "x notin (1,2)"}),
    ("default", {"field_selector": "metadata.name=c"}),
    ("", {"field_selector": "metadata.name!=a", "label_selector": "x"}),
)


class Client:
    """Keeps a copy of what it selects. `room` is how much its connection takes before it is full."""

    def __init__(self, rig: Rig, namespace: str, selection: dict[str, str], *, streaming: bool) -> None:
        self.rig, self.namespace, self.selection, self.streaming = rig, namespace, selection, streaming
        self.objects: dict[tuple[str, str], Object] = {}
        self.revision = ""
        self.room = 1 << 30
        self.watch: Watch | None = None
        self.relists = 0
        self._initial = False
        """Within the initial events of a streaming list."""

    # the sink

    def write(self, data: bytes) -> bool:
        self.room -= len(data)
        for line in data.splitlines():
            self._take(orjson.loads(line))
        return self.room > 0

    def end(self) -> None:
        self.watch = None

    def _take(self, event: Object) -> None:
        obj = event["object"]
        if event["type"] == "ERROR":
            assert obj["code"] == 410
            self.revision = ""
            return
        meta = obj["metadata"]
        assert not self.revision or int(meta["resourceVersion"]) >= int(self.revision) or self._initial
        if event["type"] == "BOOKMARK":
            self._initial = False
        else:
            key = (meta["namespace"], meta["name"])
            assert (key in self.objects) == (event["type"] != "ADDED"), (event["type"], key)
            self.objects.pop(key, None)
            if event["type"] != "DELETED":
                self.objects[key] = obj
        if not self._initial:
            self.revision = meta["resourceVersion"]

    # what it does

    def connect(self) -> None:
        """Resume; without a revision, list or stream everything anew."""
        info, options = self.rig.info("configmaps"), dict[str, Any](self.selection)
        if not self.revision:
            self.relists += 1
            self.objects, self._initial = {}, self.streaming
            if self.streaming:
                options |= {"send_initial_events": True, "resource_version_match": "NotOlderThan"}
            else:
                self._list()
        options |= {"resource_version": self.revision, "allow_bookmarks": True}
        self.watch = self.rig.registry.watch(info, self.namespace, ListOptions(**options))
        self.watch.start(self)

    def _list(self) -> None:
        info = self.rig.info("configmaps")
        page = self.rig.registry.list(info, self.namespace, ListOptions(**self.selection, limit=3))
        items = list(page.items)
        while page.continue_:
            options = ListOptions(**self.selection, limit=3, continue_=page.continue_)
            page = self.rig.registry.list(info, self.namespace, options)
            items += page.items
        self.objects = {(o["metadata"]["namespace"], o["metadata"]["name"]): o for o in items}
        self.revision = str(page.revision)

    def disconnect(self) -> None:
        if self.watch is not None:
            self.watch.stop()
            self.watch = None

    def read_on(self, room: int) -> None:
        self.room = room
        if self.watch is not None:
            self.watch.resume()

    def bookmark(self) -> None:
        if self.watch is not None:
            self.watch._write_bookmark()

    @property
    def truth(self) -> dict[tuple[str, str], Object]:
        listing = self.rig.registry.list(self.rig.info("configmaps"), self.namespace, ListOptions(**self.selection))
        return {(o["metadata"]["namespace"], o["metadata"]["name"]): o for o in listing.items}


async def write(rig: Rig, rng: random.Random) -> None:
    """One random change of the server's state."""
    name, space = rng.choice(NAMES), rng.choice(SPACES)
    there = name in rig.names("configmaps", space)
    if not there:
        labels = {"labels": {"x": rng.choice("123")}} if rng.random() < 0.8 else {}
        await rig.create("configmaps", {"metadata": {"name": name, **labels}}, namespace=space)
    elif rng.random() < 0.3:
        await rig.delete("configmaps", name, space)
    else:
        label = rng.choice(["1", "2", "3", None])
        change = {"metadata": {"labels": {"x": label}}, "data": {"n": str(rng.random())}}
        await rig.patch("configmaps", name, change, namespace=space)


async def step(rig: Rig, clients: list[Client], rng: random.Random) -> None:
    client = rng.choice(clients)
    what = rng.random()
    if what < 0.6:
        await write(rig, rng)
    elif what < 0.7:
        client.disconnect()
    elif what < 0.8 and client.watch is None:
        client.connect()
    elif what < 0.95:
        client.read_on(rng.choice([1, 300, 2000]))
    elif what < 0.98:
        client.bookmark()
    else:
        rig.registry._store.compact(rng.randint(1, rig.registry.revision))


@pytest.mark.parametrize("seed", range(12))
async def test_clients_end_up_with_what_the_server_has(rig: Rig, seed: int) -> None:
    rng = random.Random(seed)
    clients = [
        Client(rig, namespace, selection, streaming=streaming)
        for namespace, selection in SELECTIONS
        for streaming in (False, True)
    ]
    for client in clients:
        client.connect()
    for _ in range(600):
        await step(rig, clients, rng)
    for client in clients:
        client.read_on(1 << 30)
        while client.watch is None or client._initial:
            client.connect()
        assert client.objects == client.truth
    assert any(client.relists > 1 for client in clients)
