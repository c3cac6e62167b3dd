package discovery

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
)

// supernodeError returns the reason why a supernode could not introduce this peer: one line with each address
// tried and its cause, in place of libp2p's multi-line message. It returns nil if err is nil.
func supernodeError(supernode p2ppeer.AddrInfo, err error) error {
	dial, ok := errors.AsType[*swarm.DialError](err)
	switch {
	case err == nil:
		return nil
	case !ok || len(dial.DialErrors) == 0:
		return fmt.Errorf("%v: %w", supernode, err)
	}
	causes := make([]string, len(dial.DialErrors))
	for i, d := range dial.DialErrors {
		causes[i] = fmt.Sprintf("%s: %v", d.Address, d.Cause)
	}
	return fmt.Errorf("%s at %s", supernode.ID, strings.Join(causes, ", "))
}

// introduction is the state of the attempts to be introduced.
type introduction struct {
	mu       sync.Mutex
	done     bool          // introduced once; never reset
	err      error         // result of the last attempt
	attempts int           // number of finished attempts
	changed  chan struct{} // closed and replaced at the end of each attempt
}

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
