package wasm

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Name is what the runner is started as, in place of the program's name.
const Name = "p2pmpi-wasm"

// A Config says how a module runs.
type Config struct {
	Compile bool      // only compile the module that is the standard input
	Examine bool      // only say which engine there is, if it works
	Created time.Time // of the job: where the clock starts
	Seed    string    // of the random numbers: the same for all replicas of a rank
	Memory  uint64    // bytes that the module and its runner have; 0: as many as there are
}

// Arguments are those of the runner for a module with arguments of its own.
func (c Config) Arguments(args []string) []string {
	b, _ := json.Marshal(c) // has nothing that cannot be
	return append([]string{string(b)}, args...)
}

// parse is the contrary of Arguments.
func parse(args []string) (c Config, rest []string, err error) {
	if len(args) == 0 {
		return c, nil, fmt.Errorf("%s is for a peer to start", Name)
	}
	order := json.NewDecoder(strings.NewReader(args[0]))
	order.DisallowUnknownFields()
	return c, args[1:], order.Decode(&c)
}
