"""The stores against a model that simply remembers every state it was ever in."""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from capi.kube.types import Key
from capi.server.store.interface import Store, StoreEvent
from capi.server.store.memory import MemoryStore
from capi.server.store.sqlite import SqliteStore

KEYS = st.builds(Key, st.sampled_from(["a", "b"]), st.sampled_from(["x", "y", "z"]))
State = dict[Key, int]


class Model(RuleBasedStateMachine):
    """Puts, removals, commits; every past revision stays readable, and events tell what happened."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.store = self.opened()
        self.states: dict[int, State] = {0: {}}
        self.events: list[StoreEvent] = []
        self.store.subscribe("pods", self.events.append)
        self.value = 0

    def opened(self) -> Store:
        return MemoryStore()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    @property
    def head(self) -> State:
        return self.states[max(self.states)]

    async def write(self, key: Key, *, remove: bool) -> None:
        """In the loop, like every write; does not wait for the commit."""
        self.value += 1
        if remove:
            entry = self.store.remove("pods", key)
            state = {k: v for k, v in self.head.items() if k != key}
        else:
            entry = self.store.put("pods", key, {"metadata": {"name": key.name}, "value": self.value})
            state = {**self.head, key: self.value}
        assert entry.revision == max(self.states) + 1
        self.states[entry.revision] = state

    @rule(keys=st.lists(KEYS, min_size=1, max_size=4))
    def put(self, keys: list[Key]) -> None:
        for key in keys:
            self.run(self.write(key, remove=False))

    @precondition(lambda self: self.head)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        self.run(self.write(data.draw(st.sampled_from(sorted(self.head))), remove=True))

    @rule()
    def commit(self) -> None:
        self.run(self.store.durable(self.store.head_revision))
        assert self.store.revision == max(self.states)

    @rule(data=st.data())
    def read_the_past(self, data: st.DataObject) -> None:
        oldest = self.oldest()
        revision = data.draw(st.integers(oldest, self.store.revision))
        seen = {key: entry.object["value"] for key, entry in self.store.scan_at("pods", revision)}
        assert seen == self.states[revision] and list(seen) == sorted(seen)
        changes = self.store.events("pods", revision)
        assert [e.revision for e in changes] == list(range(revision + 1, self.store.revision + 1))

    def oldest(self) -> int:
        return 0

    @invariant()
    def both_views_are_right(self) -> None:
        committed = {key: entry.object["value"] for key, entry in self.store.scan("pods")}
        assert committed == self.states[self.store.revision]
        assert self.store.count("pods") == len(committed)
        assert set(self.store.head_keys("pods")) == set(self.head)
        for key, value in self.head.items():
            entry = self.store.head("pods", key)
            assert entry is not None and entry.object["value"] == value

    @invariant()
    def events_replay_to_the_state(self) -> None:
        replayed: State = dict(self.states[self.oldest()])
        for event in self.events:
            assert (event.key in replayed) == (event.type != "ADDED")
            if event.type == "DELETED":
                del replayed[event.key]
            else:
                replayed[event.key] = event.new.object["value"]
        assert replayed == self.states[self.store.revision]

    def teardown(self) -> None:
        self.run(self.store.close())
        self.run(self.loop.shutdown_default_executor())
        self.loop.close()


class DurableModel(Model):
    """The same with a file, which is closed and opened again now and then."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.start = 0
        super().__init__()

    def opened(self) -> Store:
        return SqliteStore.open(self.folder / "state.db")

    def oldest(self) -> int:
        return self.start

    @rule()
    def restart(self) -> None:
        self.run(self.store.close())
        self.store = self.opened()
        self.start = self.store.revision
        self.events = []
        self.store.subscribe("pods", self.events.append)
        assert self.start == max(self.states)

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.folder)


TestMemoryStore = Model.TestCase
TestMemoryStore.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestSqliteStore = DurableModel.TestCase
TestSqliteStore.settings = settings(
    max_examples=10, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
