"""The objects of one informer, by key, by label and by custom indexes. Values are shared and immutable.

Listings are ordered by key. Each bucket remembers its order until a key comes or goes, so that replacing an object, by far
the most frequent change, costs O(indexes) and listing a bucket costs O(bucket).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from capi.kube.types import Key

T = TypeVar("T")
IndexFunction = Callable[[Any], Iterable[str]]
_EMPTY: Mapping[str, str] = {}


class _Bucket(Generic[T]):
    """Objects by key, with their order on demand."""

    __slots__ = ("_order", "objects")

    def __init__(self) -> None:
        self.objects: dict[Key, T] = {}
        self._order: list[Key] | None = None

    def put(self, key: Key, obj: T) -> None:
        if key not in self.objects:
            self._order = None
        self.objects[key] = obj

    def drop(self, key: Key) -> None:
        if self.objects.pop(key, None) is not None:
            self._order = None

    def ordered(self) -> list[T]:
        if self._order is None:
            self._order = sorted(self.objects)
        objects = self.objects
        return [objects[key] for key in self._order]


class Store(Generic[T]):
    """Indexed objects of one kind. `labels` are the label names with an index of their own."""

    def __init__(self, labels: Iterable[str] = ()) -> None:
        self._all: _Bucket[T] = _Bucket()
        self._labels: dict[str, dict[str, _Bucket[T]]] = {name: {} for name in labels}
        self._indexes: dict[IndexFunction, dict[str, _Bucket[T]]] = {}

    def __len__(self) -> int:
        return len(self._all.objects)

    def get(self, key: Key) -> T | None:
        return self._all.objects.get(key)

    def keys(self) -> Iterable[Key]:
        return self._all.objects.keys()

    def values(self) -> Iterable[T]:
        return self._all.objects.values()

    def list(self, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> Sequence[T]:
        """Objects with all `labels`; O(smallest matching label index), or O(all) if none of them is indexed."""
        labels = labels or _EMPTY
        bucket, left = self._narrowest(labels)
        if bucket is None:
            return []
        found: list[Any] = bucket.ordered()
        if left:
            found = [obj for obj in found if _has(obj.metadata.labels, left)]
        if namespace is not None:
            found = [obj for obj in found if obj.metadata.namespace == namespace]
        return found

    def _narrowest(self, labels: Mapping[str, str]) -> tuple[_Bucket[T] | None, Mapping[str, str]]:
        """The smallest bucket that holds every match, and the labels still to check; None when nothing can match."""
        best, best_name = self._all, ""
        for name, value in labels.items():
            index = self._labels.get(name)
            if index is None:
                continue
            bucket = index.get(value)
            if bucket is None:
                return None, labels
            if not best_name or len(bucket.objects) < len(best.objects):
                best, best_name = bucket, name
        if best_name:
            labels = {name: value for name, value in labels.items() if name != best_name}
        return best, labels

    def by_index(self, function: IndexFunction, value: str) -> Sequence[T]:
        """Objects that `function` filed under `value`. Raises KeyError for a function that was not added."""
        bucket = self._indexes[function].get(value)
        return bucket.ordered() if bucket is not None else []

    def add_label_index(self, name: str) -> None:
        """Index by a label from now on; O(all). Idempotent."""
        if name not in self._labels:
            index = self._labels[name] = {}
            for key, obj in self._all.objects.items():
                _file(index, _label(obj, name), key, obj)

    def add_index(self, function: IndexFunction) -> None:
        """Index by a function's values from now on; O(all). Idempotent."""
        if function not in self._indexes:
            index = self._indexes[function] = {}
            for key, obj in self._all.objects.items():
                _file(index, function(obj), key, obj)

    def put(self, key: Key, obj: T) -> T | None:
        """Add or replace; the object that was there."""
        old = self._all.objects.get(key)
        self._all.put(key, obj)
        for name, index in self._labels.items():
            _move(index, _label(old, name), _label(obj, name), key, obj)
        for function, index in self._indexes.items():
            _move(index, () if old is None else function(old), function(obj), key, obj)
        return old

    def drop(self, key: Key) -> T | None:
        """Remove; the object that was there."""
        old = self._all.objects.get(key)
        if old is None:
            return None
        self._all.drop(key)
        for name, index in self._labels.items():
            _unfile(index, _label(old, name), key)
        for function, index in self._indexes.items():
            _unfile(index, function(old), key)
        return old


def _label(obj: Any, name: str) -> tuple[str, ...]:
    value = None if obj is None else obj.metadata.labels.get(name)
    return () if value is None else (value,)


def _has(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(labels.get(name) == value for name, value in wanted.items())


def _move(index: dict[str, _Bucket[T]], old: Iterable[str], new: Iterable[str], key: Key, obj: T) -> None:
    new = tuple(new)
    _unfile(index, [value for value in old if value not in new], key)
    _file(index, new, key, obj)


def _file(index: dict[str, _Bucket[T]], values: Iterable[str], key: Key, obj: T) -> None:
    for value in values:
        bucket = index.get(value)
        if bucket is None:
            bucket = index[value] = _Bucket()
        bucket.put(key, obj)


def _unfile(index: dict[str, _Bucket[T]], values: Iterable[str], key: Key) -> None:
    for value in values:
        bucket = index.get(value)
        if bucket is not None:
            bucket.drop(key)
            if not bucket.objects:
                del index[value]
