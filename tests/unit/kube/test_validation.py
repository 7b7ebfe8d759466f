"""Checks of single strings, with Kubernetes' exact complaints."""

import pytest

from capi.kube import validation as v

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("check", "value", "complaints"),
    [
        (v.dns_label, "a-1", []),
        (v.dns_label, "A", [LABEL]),
        (v.dns_label, "a.b", ["must not contain dots"]),
        (v.dns_label, "a" * 64, ["must be no more than 63 characters"]),
        (v.dns_label, "a\n", [LABEL]),
        (v.dns_subdomain, "a.b-c.1", []),
        (v.dns_subdomain, "a_b", [SUBDOMAIN]),
        (v.dns_subdomain, "a" * 254, ["must be no more than 253 characters"]),
        (v.label_value, "", []),
        (v.label_value, "a b", [VALUE]),
        (v.label_value, "a" * 64, ["must be no more than 63 bytes"]),
        (v.label_key, "x.io/a_b", []),
        (v.label_key, "", ["name part must be non-empty", KEY]),
        (v.label_key, "/a", ["prefix part must be non-empty"]),
        (v.label_key, "X/a", [f"prefix part {SUBDOMAIN}"]),
        (v.label_key, "x/" + "a" * 64, ["name part must be no more than 63 bytes"]),
        (v.path_segment, "a:b c", []),
        (v.path_segment, "..", ["may not be '..'"]),
        (v.path_segment, "a/b%", ["may not contain '/'", "may not contain '%'"]),
        (v.config_key, "a.b_C", []),
        (v.config_key, "..", ["must not be '..'"]),
        (v.config_key, "..a", ["must not start with '..'"]),
        (v.env_var_name, "A_B", []),
        (v.port_name, "http", []),
        (v.port_name, "-1", ["must contain at least one letter (a-z)", "must not begin or end with a hyphen"]),
        (v.percent, "10%", []),
        (v.c_identifier, "a_1", []),
        (v.wildcard_subdomain, "*.a.b", []),
        (v.dns_1035_label, "a-1", []),
    ],
)
def test_a_check_returns_kubernetes_complaints(check: v.Check, value: str, complaints: list[str]) -> None:
    assert check(value) == complaints


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (v.env_var_name, "1A"),
        (v.percent, "10"),
        (v.c_identifier, "1a"),
        (v.wildcard_subdomain, "a.b"),
        (v.dns_1035_label, "1a"),
        (v.label_key, "a/b/c"),
    ],
)
def test_a_bad_value_is_told_the_rule(check: v.Check, value: str) -> None:
    (complaint,) = check(value)
    assert "regex used for validation is" in complaint


def test_ranges_include_their_bounds() -> None:
    assert v.port_number(1) == v.port_number(65535) == []
    assert v.port_number(0) == ["must be between 1 and 65535, inclusive"]
