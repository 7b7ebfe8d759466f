"""Templates in a subset of Go's language: the same text as Go makes, or a refusal that says where and what."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capi.backends.docker.gotemplate.evaluating import render
from capi.backends.docker.gotemplate.functions import LENGTH
from capi.backends.docker.gotemplate.parsing import DEPTH
from capi.backends.docker.gotemplate.values import Struct, TemplateError, Value
from tests.unit.backends.docker.golden_templates import TARGET, difference

GOLDEN = json.loads(TARGET.read_text())
DATA = Struct(
    {
        "Name": "lb",
        "Port": 7,
        "On": True,
        "Empty": {},
        "Servers": {"b": Struct({"Address": "10.0.0.2"}), "a": Struct({"Address": "10.0.0.1"})},
    }
)
FRAGMENTS = st.sampled_from(
    ["{{", "}}", "{{-", "-}}", " ", "\n", ".Name", ".Servers", "$", "$x", ":=", "=", ",", "|", "(", ")", "if", "else", "end",
     "with", "range", "printf", "eq", "and", "1", '"%d"', '"', "`", "/*", "*/", "text", "{{end}}", "{{else}}", "{{if .On}}",
     "{{range .Servers}}", "é", "\\", "%"]
)  # fmt: skip


def made(template: str, data: Value = DATA) -> str:
    return render(template, data)


def refused(template: str) -> str:
    with pytest.raises(TemplateError) as refusal:
        made(template)
    return str(refusal.value)


@pytest.mark.parametrize("case", GOLDEN, ids=range(len(GOLDEN)))
def test_the_same_as_go_makes(case: dict[str, Any]) -> None:
    assert difference(case) == ""


def test_go_was_asked_for_enough_of_both() -> None:
    taken = [case for case in GOLDEN if not case["error"]]
    assert 50 < len(taken) < len(GOLDEN) - 50
    for word in (
        "range $a, $b :=",
        "else if",
        "with",
        "$a =",
        "{{-",
        "-}}",
        "JoinHostPort",
        "index",
        " | ",
        "/*",
        "not",
        "and",
    ):
        assert any(word in case["template"] and case["text"] for case in taken), word


@pytest.mark.parametrize(
    ("template", "text"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("a } b {{`}}`}} c", "a } b }} c", id="braces in a text do not close"),
        pytest.param("a \n {{- 1 -}} \n b", "a1b", id="white space is trimmed on both sides"),
        pytest.param("a {{-1}} b", "a -1 b", id="a minus before a digit is no trim marker"),
        pytest.param("a {{- /* x\ny }} */ -}} b", "ab", id="a comment"),
        pytest.param("{{\n.Name\n}}", "lb", id="an action on several lines"),
        pytest.param(
            "{{range $k, $v := .Servers}}{{$k}}={{$v.Address}} {{end}}", "a=10.0.0.1 b=10.0.0.2 ", id="in order"
        ),
        pytest.param("{{range .Servers}}{{.Address}} {{end}}", "10.0.0.1 10.0.0.2 ", id="range sets the dot"),
        pytest.param("{{range .Empty}}x{{else}}none{{end}}", "none", id="range over nothing"),
        pytest.param("{{with .Name}}{{.}}{{$.Port}}{{else}}x{{end}}", "lb7", id="with sets the dot, $ stays"),
        pytest.param("{{with .Empty}}x{{else}}{{.Name}}{{end}}", "lb", id="else of with keeps the dot"),
        pytest.param("{{if false}}a{{else if .Empty}}b{{else if 1}}c{{else}}d{{end}}", "c", id="else if"),
        pytest.param("{{$n := 1}}{{if true}}{{$n := 2}}{{end}}{{$n}}", "1", id="a declaration ends with its block"),
        pytest.param("{{$n := 1}}{{if true}}{{$n = 2}}{{end}}{{$n}}", "2", id="an assignment does not"),
        pytest.param('{{$l := ""}}{{range $k, $v := .Servers}}{{$l = $k}}{{end}}{{$l}}', "b", id="from a loop"),
        pytest.param('{{"x" | printf "%s-%d" .Name | len}}', None, id="a number is wanted"),
        pytest.param('{{7 | printf "%s-%d" .Name | len}}', "4", id="the result is the last argument"),
        pytest.param('{{(index .Servers "a").Address}}', "10.0.0.1", id="a member of what is in parentheses"),
        pytest.param('{{eq .Name "x" "lb"}} {{ne .Port 7}} {{not .On}}', "true false false", id="comparing"),
        pytest.param("{{and .On .Name .Empty .Nothing}}", "map[]", id="and stops at what decides"),
        pytest.param("{{or .Empty .Name .Nothing}}", "lb", id="or stops at what decides"),
        pytest.param(
            '{{printf "%v %v %%" .Servers .On}}', "map[a:{10.0.0.1} b:{10.0.0.2}] true %", id="as Go writes values"
        ),
        pytest.param(r'{{"a\n\t\"\\"}}', 'a\n\t"\\', id="escapes"),
    ],
)
def test_what_a_template_makes(template: str, text: str | None) -> None:
    if text is None:
        assert refused(template) == "line 1: printf has a text for %d, which is for a number"
    else:
        assert made(template) == text


@pytest.mark.parametrize(
    ("template", "message"),
    [
        pytest.param(
            "\n\n{{ .Nam }}", "line 3: there is no .Nam; known are .Name, .Port, .On, .Empty, .Servers", id="member"
        ),
        pytest.param("{{.Name.X}}", "line 1: a text has no member .X", id="member of a text"),
        pytest.param("{{.Servers.c}}", "line 1: there is no .c; known are .b, .a", id="entry"),
        pytest.param('a\n{{index .Servers "c"}}', "line 2: index there is no entry 'c'", id="index"),
        pytest.param("{{lt 1 2}}", "line 1: there is no function lt; known are and, eq, index", id="function"),
        pytest.param("{{if .On}}\n{{html .Name}}\n{{end}}", "line 2: there is no function html", id="html"),
        pytest.param(
            "{{if false}}\n{{lt 1 2}}{{end}}", "line 2: there is no function lt", id="even where it is not reached"
        ),
        pytest.param('{{define "x"}}{{end}}', "line 1: define is not understood", id="define"),
        pytest.param('{{template "x"}}', "line 1: template is not understood", id="template"),
        pytest.param("{{range .Servers}}{{break}}{{end}}", "line 1: break is not understood", id="break"),
        pytest.param("{{if eq .Name nil}}{{end}}", "line 1: nil is not understood", id="nil"),
        pytest.param("{{$x}}", "line 1: there is no variable $x", id="variable"),
        pytest.param("{{$x = 1}}", "line 1: there is no variable $x", id="assignment to none"),
        pytest.param("{{if $x := 1}}{{end}}{{$x}}", "line 1: there is no variable $x", id="variable of a block"),
        pytest.param("{{$ := 1}}", "line 1: $ cannot be set", id="$"),
        pytest.param("\n{{if .On}}x\n\n", "line 2: {{if}} has no {{end}}", id="no end"),
        pytest.param("{{if 1}}{{else}}{{else}}{{end}}", "line 1: 'else' is not understood here", id="two elses"),
        pytest.param("x\n{{end}}", "line 2: {{end}} belongs to no block", id="an end too many"),
        pytest.param("x\n{{else}}", "line 2: {{else}} belongs to no block", id="an else of nothing"),
        pytest.param(
            "{{range .Servers}}{{else if 1}}{{end}}", "line 1: 'if' after else is not understood", id="else if of range"
        ),
        pytest.param("a\nb {{.Name", "line 2: {{ has no }}", id="no closing braces"),
        pytest.param('{{"abc}}\n', "line 1: the text '\"abc}}\\n', which has no closing quote", id="no closing quote"),
        pytest.param("{{/* a", "line 1: a comment must begin with", id="no end of a comment"),
        pytest.param("{{ /* a */}}", "line 1: '/' is not understood", id="a comment after a blank"),
        pytest.param("{{(len .Name}}", "line 1: ( has no )", id="no closing parenthesis"),
        pytest.param("{{}}", "line 1: a value is missing", id="empty"),
        pytest.param("{{if}}x{{end}}", "line 1: a value is missing in if", id="if without"),
        pytest.param("{{.Name | 3}}", "line 1: only a function can stand after |", id="a pipe into a value"),
        pytest.param("{{.Name 3}}", "line 1: only a function takes arguments", id="arguments of a value"),
        pytest.param("{{1.5}}", "line 1: the number '1.5' is not understood; whole decimal ones are", id="a fraction"),
        pytest.param("{{0x1F}}", "line 1: the number '0x1F' is not understood", id="hexadecimal"),
        pytest.param("{{'a'}}", 'line 1: "\'" is not understood', id="a character"),
        pytest.param('{{"\\x41"}}', "line 1: \\x in '\"\\\\x41\"' is not understood", id="an escape"),
        pytest.param(
            '{{printf "%q" .Name}}', "line 1: printf does not understand %q; %s, %d, %v and %% are", id="a verb"
        ),
        pytest.param('{{printf "%05d" .Port}}', "line 1: printf does not understand %05d", id="a width"),
        pytest.param('{{printf "%s"}}', "line 1: printf has no value for %s", id="no value"),
        pytest.param('{{printf "x" 1}}', "line 1: printf has 1 more values than verbs", id="too many values"),
        pytest.param('{{eq .Port "7"}}', "line 1: eq cannot compare a number with a text", id="kinds"),
        pytest.param("{{eq . .}}", "line 1: eq cannot compare maps and objects", id="comparing objects"),
        pytest.param("{{printf 1}}", "line 1: printf needs a text first", id="printf of a number"),
        pytest.param("{{index}}", "line 1: index needs a map", id="index of nothing"),
        pytest.param("{{index .Name 1}}", "line 1: index a text has no entries", id="index of a text"),
        pytest.param("{{printf .Name len}}", "line 1: len takes 1 arguments, not 0", id="a function as an argument"),
        pytest.param("{{len.Name}}", "line 1: '.Name' is not understood here", id="a member of a function"),
        pytest.param("{{..Name}}", "line 1: '.Name' is not understood here", id="two dots"),
        pytest.param("{{eq 1}}", "line 1: eq needs two values to compare", id="eq of one"),
        pytest.param("{{and}}", "line 1: and needs a value", id="and of none"),
        pytest.param("{{not 1 2}}", "line 1: not takes 1 arguments, not 2", id="too many arguments"),
        pytest.param("{{len 3}}", "line 1: len a number has no length", id="len"),
        pytest.param("{{range .Name}}{{end}}", "line 1: range goes through a map, not a text", id="range over a text"),
        pytest.param("{{$a, $b := .Servers}}", "line 1: only range sets two variables", id="two variables"),
    ],
)
def test_what_is_not_understood_is_named_with_its_line(template: str, message: str) -> None:
    assert refused(template).startswith(message)


@given(st.text(alphabet=st.characters(blacklist_characters="{")))
def test_a_text_without_actions_stays_as_it_is(text: str) -> None:
    assert made(text) == text


@given(
    st.lists(FRAGMENTS, max_size=25).map("".join)
    | st.lists(FRAGMENTS, max_size=8).map(lambda s: f"{{{{{' '.join(s)}}}}}")
)
def test_any_template_makes_a_text_or_is_refused_with_a_line_that_it_has(template: str) -> None:
    try:
        made(template)
    except TemplateError as refusal:
        assert 1 <= refusal.line <= template.count("\n") + 1
        assert refusal.what


@pytest.mark.parametrize(
    ("template", "message"),
    [
        pytest.param("{{if 1}}" * 1000, f"more than {DEPTH} levels", id="blocks in blocks"),
        pytest.param("{{" + "(" * 1000 + "1}}", f"more than {DEPTH} levels", id="parentheses in parentheses"),
        pytest.param("{{if 0}}" + "{{else if 0}}" * 1000 + "{{end}}", f"more than {DEPTH} levels", id="a long else if"),
        pytest.param("{{range $.Servers}}" * DEPTH + "{{.}}" + "{{end}}" * DEPTH, "steps", id="loops in loops"),
        pytest.param(
            "{{range $.Servers}}" * 15 + "x" * 10000 + "{{end}}" * 15, f"writes more than {LENGTH}", id="a long result"
        ),
        pytest.param(
            '{{$x := "xxxxxxxx"}}' + '{{$x = printf "%s%s" $x $x}}' * 60, f"more than {LENGTH}", id="a long text"
        ),
        pytest.param(
            "{{range $.Servers}}" * 15 + "{{$x := `" + "x" * 10**5 + "`}}" + "{{end}}" * 15, "steps", id="long copies"
        ),
    ],
)
def test_no_template_runs_for_ever_or_fills_the_memory(template: str, message: str) -> None:
    assert message in refused(template)


@pytest.mark.parametrize(
    "template", ["{{%s}}", "{{.%s}}", "{{$%s}}", "{{`%s`.X}}", '{{index .Servers "%s"}}', "{{1%s}}"]
)
def test_a_message_stays_short_whatever_the_template_has(template: str) -> None:
    assert len(refused(template % ("x" * 10000))) < 500


def test_a_result_that_is_too_long_has_a_line() -> None:
    assert refused("\n{{.Name}}" + "x" * LENGTH).startswith("line 2: the template writes more than")


def test_a_template_for_many_servers_is_within_the_bounds() -> None:
    data = Struct({"Servers": {f"s{n:04}": Struct({"Address": "10.0.0.1"}) for n in range(1000)}})
    text = made(
        "{{range $k, $v := .Servers}}server {{$k}} {{$v.Address}} {{if eq $v.Address `x`}}y{{end}}\n{{end}}", data
    )
    assert text.count("\n") == 1000
