"""Which objects a list or watch wants: namespace, label selector, field selector.

Upstream: apiserver pkg/registry/generic, each kind's GetAttrs and field label conversion.
"""

from capi.kube import selectors
from capi.kube.errors import BadRequest
from capi.kube.types import Key
from capi.server.registry.interface import ListOptions
from capi.server.registry.served import Served
from capi.server.store.interface import Entry


class Selection:
    """Parsed selectors of one request. Fields are those of the requested version, which is asked for lazily."""

    __slots__ = ("_fields", "_labels", "_served", "namespace")

    def __init__(self, served: Served, namespace: str, options: ListOptions) -> None:
        """Raises BadRequest for selectors that cannot be parsed and for fields that cannot be selected by."""
        labels = selectors.parse_labels(options.label_selector) if options.label_selector else None
        fields = selectors.parse_fields(options.field_selector) if options.field_selector else None
        self._served = served
        self._labels = None if labels is None or labels.everything else labels
        self._fields = fields if fields is not None and fields.terms else None
        self.namespace = namespace
        if self._fields is not None:
            _check_fields(served, self._fields)
            wanted = self._fields.requires.get("metadata.namespace")
            if wanted and not namespace:
                self.namespace = wanted

    @property
    def everything(self) -> bool:
        """No selector: whatever is in the namespace matches."""
        return self._labels is None and self._fields is None

    @property
    def only(self) -> Key | None:
        """The one object that can match, if the selector names it."""
        if self._fields is None:
            return None
        name = self._fields.requires.get("metadata.name")
        if not name or (self._served.type.namespaced and not self.namespace):
            return None
        return Key(self.namespace, name)

    def matches(self, entry: Entry) -> bool:
        """Whether a stored object is selected."""
        if self._labels is not None and not self._labels.matches(entry.labels):
            return False
        if self._fields is None:
            return True
        served, obj = self._served, entry.object
        shown = served.from_storage(obj) if served.rules.view_of is not None else obj
        return self._fields.matches(lambda path: served.rules.field(shown, path))


def _check_fields(served: Served, fields: selectors.FieldSelector) -> None:
    known = ("metadata.name", "metadata.namespace") if served.type.namespaced else ("metadata.name",)
    own = served.info.selectable_fields
    for name in fields.fields:
        if name in known or name in own:
            continue
        if own and not served.custom:
            raise BadRequest(f"field label not supported: {name}")
        listed = ", ".join(f'"{field}"' for field in (*known, *own))
        raise BadRequest(f'"{name}" is not a known field selector: only {listed}')
