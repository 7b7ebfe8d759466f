"""Checks of single strings (names, label keys, …). Each returns Kubernetes' complaints, none if the value is fine.

Source: k8s.io/apimachinery/pkg/util/validation and pkg/api/validate/content.
"""

import re
from collections.abc import Callable

MAX_NAME = 253
MAX_LABEL = 63

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_WILDCARD = rf"\*\.{_SUBDOMAIN}"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_ENV = "[-._a-zA-Z][-._a-zA-Z0-9]*"
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_PERCENT = "[0-9]+%"

_label, _label_1035, _subdomain, _wildcard, _key, _value = (
    re.compile(pattern, re.ASCII) for pattern in (_LABEL, _LABEL_1035, _SUBDOMAIN, _WILDCARD, _KEY, _VALUE)
)
_EDGES = "must start and end with an alphanumeric character"
_KEY_TEXT = f"must consist of alphanumeric characters, '-', '_' or '.', and {_EDGES}"

Check = Callable[[str], list[str]]


def regex_error(text: str, pattern: str, *examples: str) -> str:
    """Kubernetes' way to say that a value does not match."""
    if not examples:
        return f"{text} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"


def dns_label(value: str) -> list[str]:
    """RFC 1123 label: a Namespace's name."""
    errors = _longer(value, MAX_LABEL)
    if not _label.fullmatch(value):
        if _subdomain.fullmatch(value):
            errors.append("must not contain dots")
        else:
            text = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and " + _EDGES
            errors.append(regex_error(text, _LABEL, "my-name", "123-abc"))
    return errors


def dns_1035_label(value: str) -> list[str]:
    """RFC 1035 label: a Service's name."""
    errors = _longer(value, MAX_LABEL)
    if not _label_1035.fullmatch(value):
        text = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character"
        )
        errors.append(regex_error(text, _LABEL_1035, "my-name", "abc-123"))
    return errors


def dns_subdomain(value: str) -> list[str]:
    """RFC 1123 subdomain: most names."""
    errors = _longer(value, MAX_NAME)
    if not _subdomain.fullmatch(value):
        text = f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and {_EDGES}"
        errors.append(regex_error(text, _SUBDOMAIN, "example.com"))
    return errors


def wildcard_subdomain(value: str) -> list[str]:
    """`*.` and a subdomain, as in an Ingress host."""
    errors = _longer(value, MAX_NAME)
    if not _wildcard.fullmatch(value):
        text = (
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
            "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
        )
        errors.append(regex_error(text, _WILDCARD, "*.example.com"))
    return errors


def path_segment(value: str) -> list[str]:
    """A name that only has to fit into a URL: RBAC kinds."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return path_segment_prefix(value)


def path_segment_prefix(value: str) -> list[str]:
    return [f"may not contain '{char}'" for char in "/%" if char in value]


def label_key(value: str) -> list[str]:
    """`[prefix/]name`: label and annotation keys, condition types, taint keys."""
    prefix, slash, name = value.rpartition("/")
    complaint = regex_error(_KEY_TEXT, _KEY, "MyName", "my.name", "123-abc")
    if "/" in prefix:
        return [
            f"a valid label key {complaint} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    errors: list[str] = []
    if slash:
        errors += [f"prefix part {text}" for text in _prefix(prefix)]
    if not name:
        errors.append("name part must be non-empty")
    errors += [f"name part {text}" for text in _longer(name, MAX_LABEL, "bytes")]
    if not _key.fullmatch(name):
        errors.append(f"name part {complaint}")
    return errors


def _prefix(value: str) -> list[str]:
    if not value:
        return ["must be non-empty"]
    return [
        text.replace(" characters", " bytes") if text.startswith("must be no more") else text
        for text in dns_subdomain(value)
    ]


def label_value(value: str) -> list[str]:
    """Empty, or up to 63 bytes of the label alphabet."""
    errors = _longer(value, MAX_LABEL, "bytes")
    if not _value.fullmatch(value):
        text = f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and {_EDGES}"
        errors.append(regex_error(text, _VALUE, "MyValue", "my_value", "12345"))
    return errors


def config_key(value: str) -> list[str]:
    """A key of a ConfigMap or Secret."""
    errors = _longer(value, MAX_NAME)
    if not re.fullmatch(_CONFIG_KEY, value):
        text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        errors.append(regex_error(text, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    return errors + _no_parent_path(value)


def env_var_name(value: str) -> list[str]:
    """A container's environment variable, strictly (no `=`, no leading digit)."""
    errors: list[str] = []
    if not re.fullmatch(_ENV, value):
        text = (
            "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', "
            "and must not start with a digit"
        )
        errors.append(regex_error(text, _ENV, "my.env-name", "MY_ENV.NAME", "MyEnvName1"))
    return errors + _no_parent_path(value)


def c_identifier(value: str) -> list[str]:
    if re.fullmatch(_C_IDENTIFIER, value):
        return []
    text = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'"
    return [regex_error(text, _C_IDENTIFIER, "my_name", "MY_NAME", "MyName")]


def percent(value: str) -> list[str]:
    if re.fullmatch(_PERCENT, value):
        return []
    return [
        regex_error("a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%")
    ]


def port_name(value: str) -> list[str]:
    """IANA service name: a container port's name."""
    errors = _longer(value, 15)
    if not re.fullmatch("[-a-z0-9]+", value):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", value):
        errors.append("must contain at least one letter (a-z)")
    if "--" in value:
        errors.append("must not contain consecutive hyphens")
    if value[:1] == "-" or value[-1:] == "-":
        errors.append("must not begin or end with a hyphen")
    return errors


def port_number(value: int) -> list[str]:
    return in_range(value, 1, 65535)


def in_range(value: int, low: int, high: int) -> list[str]:
    """Bounds included."""
    return [] if low <= value <= high else [f"must be between {low} and {high}, inclusive"]


def _longer(value: str, limit: int, unit: str = "characters") -> list[str]:
    return [f"must be no more than {limit} {unit}"] if len(value.encode()) > limit else []


def _no_parent_path(value: str) -> list[str]:
    if value in (".", ".."):
        return [f"must not be '{value}'"]
    return ["must not start with '..'"] if value.startswith("..") else []
