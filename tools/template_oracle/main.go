// template_oracle says what Go itself makes of templates: it reads lines of {"template", "data"} and writes lines of
// {"text", "error"}. The data are those of a load balancer, with the names and types that templates of users know.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"text/template"
)

type server struct {
	Address string
	Weight  int
}

type question struct {
	Template string `json:"template"`
	Data     struct {
		FrontendControlPlanePort string
		BackendControlPlanePort  string
		BackendServers           map[string]server
		IPv6                     bool
	} `json:"data"`
}

type answer struct {
	Text  string `json:"text"`
	Error string `json:"error"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<24), 1<<24)
	for lines.Scan() {
		var asked question
		must(json.Unmarshal(lines.Bytes(), &asked))
		encoded, err := json.Marshal(reply(asked))
		must(err)
		fmt.Println(string(encoded))
	}
	must(lines.Err())
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func reply(asked question) answer {
	parsed, err := template.New("t").Funcs(template.FuncMap{"JoinHostPort": net.JoinHostPort}).Parse(asked.Template)
	if err != nil {
		return answer{Error: err.Error()}
	}
	var text strings.Builder
	if err := parsed.Execute(&text, asked.Data); err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Text: text.String()}
}
