// schema_oracle says what Kubernetes itself does to custom resources: it reads lines of {"schema", "obj", "old"} and
// writes lines of {"obj", "unknown", "errs"}: the pruned and defaulted object, the pruned paths, the causes.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"
)

type question struct {
	Schema json.RawMessage `json:"schema"`
	Obj    json.RawMessage `json:"obj"`
	Old    json.RawMessage `json:"old"`
}

type answer struct {
	Obj     map[string]any `json:"obj"`
	Unknown []string       `json:"unknown"`
	Errs    []string       `json:"errs"`
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
		panic(err)
	}
}

func reply(asked question) answer {
	var external v1.JSONSchemaProps
	var internal apiextensions.JSONSchemaProps
	must(json.Unmarshal(asked.Schema, &external))
	must(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil))
	structural, err := structuralschema.NewStructural(&internal)
	must(err)

	var obj, old map[string]any
	must(utiljson.Unmarshal(asked.Obj, &obj))
	if len(asked.Old) > 0 {
		must(utiljson.Unmarshal(asked.Old, &old))
	}
	track := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	unknown := pruning.PruneWithOptions(obj, structural, true, track)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, structural)
	defaulting.Default(obj, structural)

	validator, _, err := validation.NewSchemaValidator(&internal)
	must(err)
	var found field.ErrorList
	if old == nil {
		found = validation.ValidateCustomResource(nil, obj, validator)
	} else {
		both := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: structural})
		found = validation.ValidateCustomResourceUpdate(nil, obj, old, validator, validation.WithRatcheting(both))
	}
	found = append(found, objectmeta.Validate(nil, obj, structural, true)...)
	lists := listtype.ValidateListSetsAndMaps(nil, structural, obj)
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, structural, old)) == 0 {
		found = append(found, lists...)
	}
	texts := []string{}
	for _, problem := range found {
		texts = append(texts, string(problem.Type)+"|"+problem.Error())
	}
	return answer{obj, unknown, texts}
}
