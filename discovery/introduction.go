package discovery

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
)

// An IntroductionError says that no supernode could be reached. The service
// keeps trying.
type IntroductionError struct {
	Failures []SupernodeError // one for each supernode
}

// Error lists every supernode's addresses with the cause.
func (e *IntroductionError) Error() string {
	causes := make([]string, len(e.Failures))
	for i, f := range e.Failures {
		causes[i] = f.Error()
	}
	return "no supernode reached: " + strings.Join(causes, "; ")
}

// Unwrap returns the failures.
func (e *IntroductionError) Unwrap() []error {
	errs := make([]error, len(e.Failures))
	for i := range e.Failures {
		errs[i] = &e.Failures[i]
	}
	return errs
}

// A SupernodeError is why one supernode could not introduce us.
type SupernodeError struct {
	Supernode p2ppeer.AddrInfo
	Err       error
}

// Error is one line: the address tried and its cause, for each address, in
// place of libp2p's own paragraph.
func (e *SupernodeError) Error() string {
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
func (e *SupernodeError) Unwrap() error { return e.Err }

// introduction is where the attempts to be introduced stand.
type introduction struct {
	again    chan struct{} // closed when the first acquaintances have been tried
	once     sync.Once     // closes it
	mu       sync.Mutex
	done     bool          // introduced once; never undone
	err      error         // of the last attempt
	attempts int           // finished
	changed  chan struct{} // closed and replaced at the end of each attempt
}

func newIntroduction(done bool) *introduction {
	return &introduction{done: done, changed: make(chan struct{}), again: make(chan struct{})}
}

// tried notes that acquaintances have been tried; where there is no supernode, that is all
// that can be done.
func (i *introduction) tried(all bool) {
	i.once.Do(func() {
		close(i.again)
		if all {
			i.finished(nil)
		}
	})
}

// finished notes an attempt's outcome and wakes those who wait.
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
