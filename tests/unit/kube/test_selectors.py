"""Label and field selectors: grammar, matching, and Kubernetes' words for what is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capi.kube import selectors
from capi.kube.errors import BadRequest

LABELS = {"app": "web", "tier": "2", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app", True),
        ("!app", False),
        ("gone", False),
        ("!gone", True),
        ("app=web", True),
        ("app==web", True),
        ("app=db", False),
        ("gone=web", False),
        ("app!=web", False),
        ("app!=db", True),
        ("gone!=web", True),
        ("app in (web,db)", True),
        ("app in (db)", False),
        ("app notin (web)", False),
        ("gone notin (web)", True),
        ("tier>1", True),
        ("tier>2", False),
        ("tier<3", True),
        ("app>1", False),
        ("empty=", True),
        ("empty", True),
        ("empty in ()", True),
        ("app=web,tier=2", True),
        ("app=web, tier = 3", False),
        ("x.io/a!=1,app", True),
    ],
)
def test_a_label_selector_selects(text: str, matches: bool) -> None:
    assert selectors.parse_labels(text).matches(LABELS) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a in x", "unable to parse requirement: found 'x' expected: '('"),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        (
            "-",
            "unable to parse requirement: <nil>: Invalid value: \"-\": name part must consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
            "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
    ],
)
def test_a_bad_label_selector_is_a_bad_request_in_kubernetes_words(text: str, message: str) -> None:
    with pytest.raises(BadRequest) as error:
        selectors.parse_labels(text)
    assert error.value.message == message


def test_the_exact_equalities_are_there_for_an_index() -> None:
    assert selectors.parse_labels("a=1,b in (2),c in (3,4),d,e!=5").requires == {"a": "1", "b": "2"}


def test_a_wire_selector_without_conditions_matches_everything_and_null_nothing() -> None:
    assert selectors.labels_from_wire({}).matches({})
    assert not selectors.labels_from_wire(None).matches({})


def test_a_wire_selector_combines_labels_and_expressions() -> None:
    selector = selectors.labels_from_wire(
        {
            "matchLabels": {"a": "1"},
            "matchExpressions": [
                {"key": "b", "operator": "NotIn", "values": ["x"]},
                {"key": "c", "operator": "Exists"},
            ],
        }
    )
    assert str(selector) == "a=1,b!=x,c"
    assert selector.matches({"a": "1", "c": ""})
    assert not selector.matches({"a": "1", "b": "x", "c": ""})


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ({"key": "a", "operator": "Is"}, '"Is" is not a valid label selector operator'),
        (
            {"key": "a", "operator": "In"},
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            {"key": "a", "operator": "Exists", "values": ["b"]},
            'values: Invalid value: ["b"]: values set must be empty for exists and does not exist',
        ),
    ],
)
def test_a_bad_wire_selector_is_a_bad_request(expression: dict[str, object], message: str) -> None:
    with pytest.raises(BadRequest) as error:
        selectors.labels_from_wire({"matchExpressions": [expression]})
    assert error.value.message == message


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("metadata.name=x", True),
        ("metadata.name==y", False),
        ("metadata.name!=y,status.phase=", True),
        (r"note=a\,b\=c\\", True),
        ("status.phase=Running", False),
    ],
)
def test_a_field_selector_selects(text: str, matches: bool) -> None:
    fields = {"metadata.name": "x", "note": "a,b=c\\"}
    assert selectors.parse_fields(text).matches(lambda name: fields.get(name, "")) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
    ],
)
def test_a_bad_field_selector_is_a_bad_request(text: str, message: str) -> None:
    with pytest.raises(BadRequest) as error:
        selectors.parse_fields(text)
    assert error.value.message == message


VALUES = st.text("ab1", max_size=2)
KEYS = st.sampled_from(["a", "b", "x.io/c"])
REQUIREMENTS = st.one_of(
    st.builds(
        lambda k, o, v: selectors.Requirement(k, o, frozenset(v)),
        KEYS,
        st.sampled_from(["in", "notin"]),
        st.sets(VALUES, min_size=1, max_size=3),
    ),
    st.builds(lambda k, o: selectors.Requirement(k, o), KEYS, st.sampled_from(["exists", "!"])),
)


@given(st.lists(REQUIREMENTS, max_size=4), st.dictionaries(KEYS, VALUES))
def test_a_selector_means_the_same_after_printing_and_parsing(
    requirements: list[selectors.Requirement], labels: dict[str, str]
) -> None:
    selector = selectors.LabelSelector(tuple(requirements))
    assert selectors.parse_labels(str(selector)).matches(labels) is selector.matches(labels)


@given(st.dictionaries(KEYS, VALUES, max_size=3), st.dictionaries(KEYS, VALUES, max_size=3))
def test_the_selector_of_labels_selects_their_supersets(wanted: dict[str, str], labels: dict[str, str]) -> None:
    assert selectors.from_labels(wanted).matches(labels) is (wanted.items() <= labels.items())


@given(st.text(max_size=12))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for parse in (selectors.parse_labels, selectors.parse_fields):
        try:
            parse(text)
        except BadRequest as error:
            assert error.message
