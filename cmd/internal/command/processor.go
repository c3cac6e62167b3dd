package command

import (
	"os"
	"runtime"
)

// OneProcessor has this process use one processor at a time, unless GOMAXPROCS
// in the environment says otherwise. A peer passes data on: with more processors
// the runtime wakes an idle thread at each of the many hand-offs of a message
// from goroutine to goroutine within libp2p, which takes longer than the message's
// own work. It is also all that a guest should take of the owner's machine.
func OneProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
}
