"""A subset of Go's text/template: what a configuration file that is filled from a few values needs.

    {{/* comment */}}  {{- trim -}}                    text and white space
    .A.B  $x.Address  (index .Map "k").Address         values
    {{$x := .A}}  {{$x = .B}}                          variables
    {{if}} {{else if}} {{else}} {{with}} {{range $k, $v := .Map}} {{end}}
    and or not eq ne len index printf                  functions, called as `f a b` or `b | f a`

What is accepted gives the same text as in Go. Everything else is refused with its line and its name, before anything is
written: nothing is ignored, and nothing runs for ever or fills the memory (`evaluating` has the bounds
and the entry, `render`).

Differs: a member that a map does not have is an error instead of `<no value>`.
"""
