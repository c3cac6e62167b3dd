package wasm

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Name is the name under which a runner is started, in place of the program's name.
const Name = "p2pmpi-wasm"

// A Config describes how a module runs.
type Config struct {
	Compile bool      // only compile the module on standard input
	Examine bool      // only test the engine, and report its name
	Created time.Time // creation time of the job, at which the clock starts
	Seed    string    // seed of the random numbers; the same for all replicas of a rank
	Memory  uint64    // bytes for the module and its runner; 0 means no limit
	Disk    int64     // bytes for the module's files; 0 means no limit
	Name    int64     // minimum bytes of Disk that the name of a file counts
}

// Arguments returns the arguments of the runner for a module with the given arguments.
func (c Config) Arguments(args []string) []string {
	b, _ := json.Marshal(c) // cannot fail for these types
	return append([]string{string(b)}, args...)
}

// parse is the inverse of Arguments.
func parse(args []string) (c Config, rest []string, err error) {
	if len(args) == 0 {
		return c, nil, fmt.Errorf("%s must be started by a peer", Name)
	}
	order := json.NewDecoder(strings.NewReader(args[0]))
	order.DisallowUnknownFields()
	return c, args[1:], order.Decode(&c)
}
