package command

import (
	"os"
	"runtime"
)

// OneProcessor limits this process to one processor at a time, unless GOMAXPROCS is set in the
// environment. A peer mainly forwards data. With more processors the runtime would wake an idle thread
// for each hand-off of a message between goroutines within libp2p, which takes longer than processing the
// message. A guest should not take more than one processor of the owner's machine anyway.
func OneProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
}
