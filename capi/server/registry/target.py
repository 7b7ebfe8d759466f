"""What one write is about."""

from dataclasses import dataclass, field

from capi.kube.errors import BadRequest
from capi.kube.types import Key, Object
from capi.server.registry import refusals
from capi.server.registry.interface import WriteOptions
from capi.server.registry.served import Served


@dataclass(slots=True)
class Target:
    """The addressed object and the options of the request; collects warnings."""

    served: Served
    namespace: str
    name: str
    options: WriteOptions
    subresource: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def table(self) -> str:
        return self.served.table

    @property
    def key(self) -> Key:
        return Key(self.namespace if self.served.type.namespaced else "", self.name)

    @property
    def manager(self) -> str:
        return self.options.field_manager or "unknown"

    def check_name(self, obj: Object) -> None:
        """The body must be about the object in the URL. Raises BadRequest."""
        meta = obj["metadata"]
        name = str(meta.get("name") or "")
        if name != self.name:
            if not name:
                raise BadRequest("the name of the object must be specified in its metadata")
            raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({self.name})")
        self.check_namespace(obj)

    def check_namespace(self, obj: Object) -> None:
        sent = obj["metadata"].get("namespace")
        if sent and self.served.type.namespaced and sent != self.namespace:
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")

    def note_unknown(self, unknown: list[str], *, patch: str = "") -> None:
        """Unknown fields as fieldValidation says: refused, warned of or ignored. `patch` is the body of a patch."""
        if not unknown or self.options.field_validation == "Ignore":
            return
        texts = [f'unknown field "{path}"' for path in unknown]
        if self.options.field_validation == "Warn":
            self.warnings.extend(texts)
            return
        text = f"strict decoding error: {', '.join(texts)}"
        if patch and not self.served.custom:
            raise refusals.bad_patch(patch, text)
        raise BadRequest(text)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a write in the head view: tell nobody before `revision` is durable."""

    object: Object
    revision: int
    encoded: bytes = b""
    created: bool = False
