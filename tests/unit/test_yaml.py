"""YAML as Kubernetes reads it."""

import pytest

from capi.kube import yaml
from capi.kube.errors import BadRequest


@pytest.mark.parametrize(
    "text, value",
    [
        ("a: 12:30", "12:30"),
        ("a: 2026-01-01", "2026-01-01"),
        ("a: 2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("a: no", False),
        ("a: on", True),
        ("a: 'no'", "no"),
        ("a: 1e3", 1000.0),
        ("a: 1.5", 1.5),
        ("a: 10", 10),
        ("a: 0x10", 16),
        ("a: 010", 8),
        ("a: v1.35.4", "v1.35.4"),
        ("a: ~", None),
        ("a: {b: [1, two]}", {"b": [1, "two"]}),
    ],
)
def test_scalars_are_what_kubectl_makes_of_them(text: str, value: object) -> None:
    assert yaml.load(text) == {"a": value}
    assert type(yaml.load(text)["a"]) is type(value)


def test_keys_become_strings() -> None:
    assert yaml.load("1: a\ntrue: b") == {"1": "a", "true": "b"}


def test_merge_keys_work() -> None:
    assert yaml.load("base: &b {x: 1}\nother: {<<: *b, y: 2}")["other"] == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    "text, words",
    [
        ("a: b: c", "line 1, column 5"),
        ("a: 1\na: 2", 'key "a" already set'),
        ("[", "not YAML"),
        ("a: !!python/object:os.system x", "not YAML"),
    ],
)
def test_an_error_says_where(text: str, words: str) -> None:
    with pytest.raises(BadRequest, match=words.replace("(", r"\(")):
        yaml.load(text)


def test_several_documents_and_empty_ones() -> None:
    assert yaml.load_all("---\n---\na: 1\n---\nb: 2\n") == [{"a": 1}, {"b": 2}]
    with pytest.raises(BadRequest, match="found 2"):
        yaml.load("a: 1\n---\nb: 2")


def test_what_is_dumped_loads_to_the_same() -> None:
    value = {"a": "12:30", "b": ["no", "2026-01-01", "0x1", 1, 1.5, None, True], "c": {"d": "x\ny\n"}}
    assert yaml.load(yaml.dump(value)) == value


@pytest.mark.parametrize("text", ["1e3", "0o7", "0x1F", "0b11", "1_000", "12:30", "no", ".5", "2026-01-01"])
def test_texts_that_some_reader_takes_for_something_else_are_quoted(text: str) -> None:
    assert yaml.dump({"label": text}) == f"label: '{text}'\n"
    assert yaml.load(yaml.dump({text: text})) == {text: text}


def test_own_keys_win_over_merged_ones_and_earlier_merges_over_later_ones() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 3}"
    assert yaml.load(text)["c"] == {"x": 3, "y": 1, "z": 2}


@pytest.mark.parametrize("scalar", ["=", "<<"])
def test_signs_with_a_meaning_as_keys_are_strings_as_values(scalar: str) -> None:
    assert yaml.load(f"operator: {scalar}") == {"operator": scalar}


def test_whole_numbers_beyond_64_bits_are_floats() -> None:
    assert yaml.load("a: 99999999999999999999999999") == {"a": 1e26}


@pytest.mark.parametrize("text", ["a: .inf", "a: .nan", "a: 1e400", "a: !!binary aGk=", "a: !!set {b}", "a: !other b"])
def test_what_json_cannot_say_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="line 1, column 4"):
        yaml.load(text)


def test_aliases_may_repeat_but_not_multiply() -> None:
    assert yaml.load("a: &a [1]\nb: *a") == {"a": [1], "b": [1]}
    steps = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 4)}]\n" for i in range(1, 30))
    with pytest.raises(BadRequest, match="aliases"):
        yaml.load("a0: &a0 [x]\n" + steps)
