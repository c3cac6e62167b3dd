package peer

import (
	"fmt"
	"sync"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
)

// halting records whether, how and why a peer has to end. Its methods are safe for concurrent use.
type halting struct {
	halted chan struct{} // closed when the peer has to be closed

	mu     sync.Mutex
	once   sync.Once
	asked  status.Halt // strongest requested halt
	failed error       // reason, if the owner did not ask for it
}

func newHalting() *halting { return &halting{halted: make(chan struct{})} }

// ask records a requested halt, and reports whether it is stronger than all earlier ones.
func (h *halting) ask(how status.Halt) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	strength := map[status.Halt]int{status.Drain: 1, status.Orderly: 2, status.Now: 3}
	if strength[how] <= strength[h.asked] {
		return false
	}
	h.asked = how
	return true
}

func (h *halting) strongest() status.Halt {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked
}

func (h *halting) now() { h.once.Do(func() { close(h.halted) }) }

// fail records why the peer has to end although the owner did not ask for it.
func (h *halting) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = err
}

func (h *halting) failure() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failed
}

// A CopyError means that another peer has the identity in a home: one of the two homes is a copy of the
// other.
type CopyError struct {
	Home string
	Err  *discovery.DuplicateError
}

// Error names the home and the location of the other peer.
func (e *CopyError) Error() string {
	return fmt.Sprintf("home %s is a copy of one that is in use: %v", e.Home, e.Err)
}

// Unwrap returns the cause.
func (e *CopyError) Unwrap() error { return e.Err }
