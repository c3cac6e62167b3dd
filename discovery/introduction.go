package discovery

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
)

// An introductionError reports that no supernode could be reached. The service keeps trying.
type introductionError struct {
	Failures []supernodeError // one for each supernode
}

// Error lists every supernode's addresses with the cause.
func (e *introductionError) Error() string {
	causes := make([]string, len(e.Failures))
	for i, f := range e.Failures {
		causes[i] = f.Error()
	}
	return "no supernode reached: " + strings.Join(causes, "; ")
}

// Unwrap returns the failures.
func (e *introductionError) Unwrap() []error {
	errs := make([]error, len(e.Failures))
	for i := range e.Failures {
		errs[i] = &e.Failures[i]
	}
	return errs
}

// A supernodeError reports why one supernode could not introduce this peer.
type supernodeError struct {
	Supernode p2ppeer.AddrInfo
	Err       error
}

// Error returns one line with each address tried and its cause, in place of libp2p's multi-line message.
func (e *supernodeError) Error() string {
	dial, ok := errors.AsType[*swarm.DialError](e.Err)
	if !ok || len(dial.DialErrors) == 0 {
		return fmt.Sprintf("%v: %v", e.Supernode, e.Err)
	}
	causes := make([]string, len(dial.DialErrors))
	for i, d := range dial.DialErrors {
		causes[i] = fmt.Sprintf("%s: %v", d.Address, d.Cause)
	}
	return fmt.Sprintf("%s at %s", e.Supernode.ID, strings.Join(causes, ", "))
}

// Unwrap returns the cause.
func (e *supernodeError) Unwrap() error { return e.Err }

// introduction is the state of the attempts to be introduced.
type introduction struct {
	mu       sync.Mutex
	done     bool          // introduced once; never reset
	err      error         // result of the last attempt
	attempts int           // number of finished attempts
	changed  chan struct{} // closed and replaced at the end of each attempt
}

func newIntroduction() *introduction { return &introduction{changed: make(chan struct{})} }

// finished records the outcome of an attempt and wakes the waiting callers.
func (i *introduction) finished(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.done = i.done || err == nil
	i.err = err
	i.attempts++
	close(i.changed)
	i.changed = make(chan struct{})
}

func (i *introduction) state() (done bool, attempts int, changed <-chan struct{}, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.done, i.attempts, i.changed, i.err
}
