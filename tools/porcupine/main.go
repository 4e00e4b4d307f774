// SPDX-License-Identifier: Apache-2.0
// Whether histories of a record are linearizable, by Porcupine: the question of controller/records/tests/records_history.py, answered by
// somebody else's checker. Standard input has a JSON list of histories, each a list of that file's operations; standard output gets
// a list of true and false.
package main

import (
	"encoding/json"
	"log"
	"math"
	"os"

	"github.com/anishathalye/porcupine"
)

type state struct {
	version int
	there   bool
	value   string
}

type operation struct {
	Kind      string              `json:"kind"`
	Written   *string             `json:"written"`
	IfVersion *int                `json:"if_version"`
	Begin     int64               `json:"begin"`
	End       *int64              `json:"end"` // null: it is not known whether it was done.
	Result    *[2]json.RawMessage `json:"result"`
}

func main() {
	var histories [][]operation
	if err := json.NewDecoder(os.Stdin).Decode(&histories); err != nil {
		log.Fatal(err)
	}
	model := porcupine.NondeterministicModel{Init: func() []interface{} { return []interface{}{state{}} }, Step: step}
	answers := make([]bool, len(histories))
	for i, history := range histories {
		operations := make([]porcupine.Operation, len(history))
		for j, one := range history {
			end := int64(math.MaxInt64)
			if one.End != nil {
				end = *one.End
			}
			operations[j] = porcupine.Operation{ClientId: j, Input: one, Call: one.Begin, Return: end}
		}
		answers[i] = porcupine.CheckOperations(model.ToModel(), operations)
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		log.Fatal(err)
	}
}

func step(before, input, _ interface{}) []interface{} {
	now, one := before.(state), input.(operation)
	present := 0
	if now.there {
		present = now.version
	}
	met := one.IfVersion == nil || *one.IfVersion == present
	var after []interface{}
	switch one.Kind {
	case "read":
		if one.End == nil || one.returned() == (state{present, now.there, now.value}) {
			after = append(after, now)
		}
	case "refused":
		if !met {
			after = append(after, now)
		}
	default:
		if one.End == nil {
			// Perhaps never.
			after = append(after, now)
		}
		done := state{version: now.version + 1}
		if one.Written != nil {
			done.there, done.value = true, *one.Written
		}
		if met && (one.Kind != "delete" || now.there) && (one.Result == nil || one.returned() == done) {
			after = append(after, done)
		}
	}
	return after
}

func (one operation) returned() state {
	var version int
	var value *string
	for i, into := range []interface{}{&version, &value} {
		if err := json.Unmarshal(one.Result[i], into); err != nil {
			log.Fatal(err)
		}
	}
	if value == nil {
		return state{version: version}
	}
	return state{version, true, *value}
}
