"""What a CustomResourceDefinition must be: names, versions, schemas, conversion, subresources, columns.

Causes name fields as Kubernetes' internal version does: what all versions share is at `spec.validation`,
`spec.subresources`, `spec.additionalPrinterColumns`.

Source: pkg/apis/apiextensions/validation/validation.go of k8s.io/apiextensions-apiserver.
"""

from collections.abc import Iterator
from typing import Any

from capi.kube import jsonpath, validation
from capi.kube.errors import Cause
from capi.kube.types import Object
from capi.server.registry.schema import causes, compiled, form, structural

_API_APPROVED = "api-approved.kubernetes.io"
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = (
    "bsonobjectid", "byte", "cidr", "creditcard", "date", "date-time", "double", "duration", "email", "float", "hexcolor",
    "hostname", "int32", "int64", "ipv4", "ipv6", "isbn", "isbn10", "isbn13", "mac", "password", "rgbcolor", "ssn", "uri",
    "uuid", "uuid3", "uuid4", "uuid5",
)  # fmt: skip
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
MAX_SELECTABLE = 8


def validate(crd: Object, old: Object | None) -> list[Cause]:
    """Everything wrong with a CRD, or with its change from `old`."""
    spec = crd.get("spec") or {}
    found = list(_spec(spec, old))
    name = str((crd.get("metadata") or {}).get("name") or "")
    if name and name != f"{(spec.get('names') or {}).get('plural')}.{spec.get('group')}":
        found.append(causes.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    found += _stored_versions(crd)
    found += _approval(crd, old)
    return found + (list(_changes(crd, old)) if old is not None else [])


def _spec(spec: Object, old: Object | None) -> Iterator[Cause]:
    group = str(spec.get("group") or "")
    if not group:
        yield causes.required("spec.group")
    elif wrong := validation.dns_subdomain(group):
        yield causes.invalid("spec.group", group, ",".join(wrong))
    elif "." not in group:
        yield causes.invalid("spec.group", group, "should be a domain with at least one dot")
    scope = spec.get("scope")
    if not scope:
        yield causes.required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield causes.not_supported("spec.scope", scope, ("Cluster", "Namespaced"))
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield causes.invalid("spec.preserveUnknownFields", True, text)
    yield from _versions(spec, old)
    yield from _names(spec.get("names") or {})
    yield from _conversion(spec.get("conversion") or {})


def _names(names: Object) -> Iterator[Cause]:
    for name in ("plural", "singular", "kind", "listKind"):
        value = str(names.get(name) or "")
        if not value:
            yield causes.required(f"spec.names.{name}")
            continue
        mixed = name in ("kind", "listKind")
        if wrong := validation.dns_1035_label(value.lower() if mixed else value):
            text = "may have mixed case, but should otherwise match: " if mixed else ""
            yield causes.invalid(f"spec.names.{name}", value, text + ",".join(wrong))
    for name in ("shortNames", "categories"):
        for index, value in enumerate(names.get(name) or ()):
            if wrong := validation.dns_1035_label(str(value)):
                yield causes.invalid(f"spec.names.{name}[{index}]", value, ",".join(wrong))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield causes.invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _versions(spec: Object, old: Object | None) -> Iterator[Cause]:
    versions: list[Object] = [v for v in spec.get("versions") or () if isinstance(v, dict)]
    names = [version.get("name") for version in versions]
    for index, name in enumerate(names):
        if wrong := validation.dns_1035_label(str(name or "")):
            yield causes.invalid(f"spec.versions[{index}].name", name or "", ",".join(wrong))
    if len(set(names)) < len(names):
        yield causes.invalid("spec.versions", versions, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield causes.invalid("spec.versions", versions, "must have exactly one version marked as storage version")
    before = {v.get("name"): v for v in (old or {}).get("spec", {}).get("versions") or ()}
    for index, version in enumerate(_shared_once(versions)):
        here = f"spec.versions[{index}]"
        unchanged = version.get("schema") == (before.get(version.get("name")) or {}).get("schema")
        if "schema" in version or not isinstance(versions[index].get("schema"), dict):
            path = "spec.validation" if _shared(versions, "schema") else f"{here}.schema"
            yield from _schema(version, path, unchanged)
        path = "spec" if _shared(versions, "subresources") else here
        yield from _scale((version.get("subresources") or {}).get("scale"), f"{path}.subresources.scale")
        path = "spec" if _shared(versions, "additionalPrinterColumns") else here
        for number, column in enumerate(version.get("additionalPrinterColumns") or ()):
            yield from _column(column, f"{path}.additionalPrinterColumns[{number}]")
        path = "spec" if _shared(versions, "selectableFields") else here
        yield from _selectable(version, versions[index], f"{path}.selectableFields")


def _shared(versions: list[Object], member: str) -> bool:
    """Whether all versions have the same value, which then counts as the CRD's own."""
    return all(version.get(member) == versions[0].get(member) for version in versions[1:])


def _shared_once(versions: list[Object]) -> Iterator[Object]:
    """The versions; what all share is left in the first one only."""
    members = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
    shared = [member for member in members if _shared(versions, member)]
    for index, version in enumerate(versions):
        yield version if index == 0 else {k: v for k, v in version.items() if k not in shared}


def _schema(version: Object, path: str, unchanged: bool) -> Iterator[Cause]:
    path = f"{path}.openAPIV3Schema"
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if not isinstance(schema, dict):
        yield causes.required(path)
        return
    if text := form.wrong(schema):
        yield causes.invalid(path, "", text)
        return
    wrong = structural.validate(schema, path)
    yield from wrong
    if not wrong and not unchanged:
        yield from _defaults(schema, path)
        yield from _rules(schema, path, True)


def _defaults(schema: Object, path: str) -> Iterator[Cause]:
    """A default must be what its schema would make of it, and valid."""
    default = schema.get("default")
    if default is not None:
        here = compiled.CompiledSchema({"type": "object", "properties": {"default": schema}})
        pruned, dropped = here.prune({"default": default})
        if dropped:
            text = f"must not have unknown fields, found: {', '.join(dropped)}"
            yield causes.invalid(f"{path}.default", default, text)
        for cause in here.validate(here.default(pruned)):
            yield Cause(
                cause.reason,
                cause.message.replace("default in body", f"{path}.default in body"),
                f"{path}.{cause.field}",
            )
    for step, child in structural.children(schema):
        yield from _defaults(child, f"{path}.{step}")


def _rules(schema: Object, path: str, root: bool) -> Iterator[Cause]:
    """Validation rules that are incomplete or do not compile."""
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        yield from _rule(rule, schema, f"{path}.x-kubernetes-validations[{index}]", root)
    for step, child in structural.children(schema):
        yield from _rules(child, f"{path}.{step}", False)


def _rule(rule: Object, schema: Object, path: str, root: bool) -> Iterator[Cause]:
    text, message = str(rule.get("rule") or "").strip(), rule.get("message")
    if not text:
        yield causes.required(f"{path}.rule", "rule is not specified")
        return
    if message and not message.strip():
        yield causes.invalid(f"{path}.message", message, "must be non-empty if specified")
    elif message and "\n" in message.strip():
        yield causes.invalid(f"{path}.message", message, "must not contain line breaks")
    elif "\n" in text and not message:
        yield causes.required(f"{path}.message", "message must be specified if rule contains line breaks")
    if (reason := rule.get("reason")) and reason not in _REASONS:
        yield causes.not_supported(f"{path}.reason", reason, _REASONS)
    if (field := rule.get("fieldPath")) and not _leads_somewhere(schema, str(field)):
        yield causes.invalid(f"{path}.fieldPath", field, "must be a valid path")
    yield from _expressions(rule, schema, path, root)


def _expressions(rule: Object, schema: Object, path: str, root: bool) -> Iterator[Cause]:
    from capi.server.registry.schema import cel  # the engine is large, most CRDs have no rules

    optional = bool(rule.get("optionalOldSelf"))
    for member, wanted in (("rule", "bool"), ("messageExpression", "string")):
        if not rule.get(member):
            continue
        try:
            program = cel.compile_rule(
                str(rule[member]), schema, root=root, optional_old=optional and member == "rule", wanted=wanted
            )
        except cel.CelError as error:
            text = str(error)
            prefix = "" if text.startswith("cel expression must") else "compilation failed: "
            yield causes.invalid(f"{path}.{member}", rule, f"{prefix}{text}")
            continue
        if member == "rule" and optional and not program.uses_old:
            yield causes.invalid(f"{path}.optionalOldSelf", True, "may not be set if oldSelf is not used in rule")


def _leads_somewhere(schema: Object, path: str) -> bool:
    """Whether a fieldPath like `.spec.name` or `['x']` names declared fields."""
    steps = path.replace("['", ".").replace("']", "").removeprefix(".").split(".")
    node: Any = schema
    for step in steps:
        properties = (node or {}).get("properties") or {}
        node = properties.get(step) or (node or {}).get("additionalProperties")
        if not isinstance(node, dict):
            return False
    return True


def _simple_path(value: str, path: str) -> Iterator[Cause]:
    if not value.startswith("."):
        yield causes.invalid(path, value, "must be a simple json path starting with .")
        return
    try:
        jsonpath.compile(value)
    except ValueError:
        yield causes.invalid(path, value, "is an invalid path")


def _scale(scale: Object | None, path: str) -> Iterator[Cause]:
    if not isinstance(scale, dict):
        return
    for name, roots in (("specReplicasPath", (".spec.",)), ("statusReplicasPath", (".status.",))):
        value = str(scale.get(name) or "")
        if not value:
            yield causes.required(f"{path}.{name}")
        elif not value.startswith(roots):
            yield causes.invalid(f"{path}.{name}", value, f"should be a json path under {roots[0].rstrip('.')}")
    selector = str(scale.get("labelSelectorPath") or "")
    if selector and not selector.startswith((".spec.", ".status.")):
        yield causes.invalid(
            f"{path}.labelSelectorPath", selector, "should be a json path under either .spec or .status"
        )


def _column(column: Object, path: str) -> Iterator[Cause]:
    if not column.get("name"):
        yield causes.required(f"{path}.name")
    kind, text = column.get("type"), f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        yield causes.required(f"{path}.type", text)
    elif kind not in _COLUMN_TYPES:
        yield causes.invalid(f"{path}.type", kind, text)
    if (format_ := column.get("format")) and format_ not in _COLUMN_FORMATS:
        yield causes.invalid(f"{path}.format", format_, f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not column.get("jsonPath"):
        yield causes.required(f"{path}.JSONPath")
    else:
        yield from _simple_path(str(column["jsonPath"]), f"{path}.JSONPath")


def _selectable(version: Object, whole: Object, path: str) -> Iterator[Cause]:
    fields = version.get("selectableFields") or ()
    schema = (whole.get("schema") or {}).get("openAPIV3Schema") or {}
    if form.wrong(schema):  # which `_schema` says
        return
    seen: set[str] = set()
    for index, field in enumerate(fields):
        value, here = str(field.get("jsonPath") or ""), f"{path}[{index}].jsonPath"
        if not value:
            yield causes.required(here)
            continue
        node: Any = schema
        for step in value.removeprefix(".").split("."):
            node = (node.get("properties") or {}).get(step) if isinstance(node, dict) else None
        if node is None:
            yield causes.invalid(here, value, "is an invalid path: does not refer to a valid field")
        elif node.get("type") not in ("string", "boolean", "integer"):
            text = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
            yield causes.invalid(here, value, text)
        if value in seen:
            yield causes.duplicate(here, value)
        seen.add(value)
    if len(seen) > MAX_SELECTABLE:
        yield causes.too_many(path, len(seen), MAX_SELECTABLE)


def _conversion(conversion: Object) -> Iterator[Cause]:
    here, strategy = "spec.conversion", conversion.get("strategy")
    if strategy not in ("None", "Webhook"):
        if strategy:
            yield causes.not_supported(f"{here}.strategy", strategy, ("None", "Webhook"))
        else:
            yield causes.required(f"{here}.strategy")
        return
    webhook = conversion.get("webhook") or {}
    if strategy == "None":
        if webhook:
            yield causes.forbidden(
                f"{here}.webhookClientConfig", "should not be set when strategy is not set to Webhook"
            )
        return
    client = webhook.get("clientConfig")
    if not client:
        yield causes.required(f"{here}.webhookClientConfig", "required when strategy is set to Webhook")
    elif bool(client.get("url")) == bool(client.get("service")):
        yield causes.required(f"{here}.webhookClientConfig", "exactly one of url or service is required")
    elif client.get("url") and not str(client["url"]).startswith("https://"):
        text = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
        yield causes.invalid(f"{here}.webhookClientConfig.url", client["url"], text)
    versions = webhook.get("conversionReviewVersions") or []
    if not versions:
        yield causes.required(f"{here}.conversionReviewVersions")
    elif not {"v1", "v1beta1"} & set(versions):
        text = "must include at least one of v1, v1beta1"
        yield causes.invalid(f"{here}.conversionReviewVersions", versions, text)


def _stored_versions(crd: Object) -> Iterator[Cause]:
    stored = (crd.get("status") or {}).get("storedVersions") or []
    here = "status.storedVersions"
    versions = (crd.get("spec") or {}).get("versions") or ()
    if not stored:
        yield causes.invalid(here, stored, "must have at least one stored version")
        return
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            yield causes.invalid(here, stored, f"must have the storage version {version.get('name')}")
    names = {version.get("name") for version in versions}
    for index, name in enumerate(stored):
        if name not in names:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
                f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
                "status.storedVersions"
            )
            yield causes.invalid(f"{here}[{index}]", name, text)


def _approval(crd: Object, old: Object | None) -> Iterator[Cause]:
    """Groups of the Kubernetes project need a reference to their approval."""
    group = str((crd.get("spec") or {}).get("group") or "")
    if not (group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))):
        return

    def approval(obj: Object) -> str | None:
        value = ((obj.get("metadata") or {}).get("annotations") or {}).get(_API_APPROVED)
        return None if value is None else str(value)

    value = approval(crd)
    if old is not None and approval(old) == value:
        return
    here = f"metadata.annotations[{_API_APPROVED}]"
    about = "see https://github.com/kubernetes/enhancements/pull/1111"
    if value is None:
        yield causes.required(here, f"protected groups must have approval annotation {_q(_API_APPROVED)}, {about}")
    elif not value.startswith(("unapproved", "http://", "https://")):
        text = f"protected groups must have approval annotation {_q(_API_APPROVED)} with either a URL or a reason starting with"
        yield causes.invalid(here, value, f'{text} "unapproved", {about}')


_q = causes.quoted


def _changes(crd: Object, old: Object) -> Iterator[Cause]:
    """What may not change: the names that make the resource, and once it is established its scope and kind."""
    new_spec, old_spec = crd.get("spec") or {}, old.get("spec") or {}
    conditions = (old.get("status") or {}).get("conditions") or ()
    if any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions):
        yield from causes.immutable("spec.scope", new_spec.get("scope"), old_spec.get("scope"))
        kinds = ((spec.get("names") or {}).get("kind") for spec in (new_spec, old_spec))
        yield from causes.immutable("spec.names.kind", next(kinds), next(kinds))
    yield from causes.immutable("spec.group", new_spec.get("group"), old_spec.get("group"))
    plurals = ((spec.get("names") or {}).get("plural") for spec in (new_spec, old_spec))
    yield from causes.immutable("spec.names.plural", next(plurals), next(plurals))
