package filetransfer

import (
	"errors"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/background"
)

// An ahead makes a flight safe for concurrent use by a sender. An ahead is nil if the remote does not report
// how much has arrived; then arrived always returns false.
type ahead struct {
	begun time.Time
	over  chan struct{} // closed when no more reports will come

	mu      sync.Mutex
	flight  *flight
	changed chan struct{} // signals that there may be room
}

func newAhead() *ahead {
	return &ahead{begun: time.Now(), over: make(chan struct{}), flight: newFlight(), changed: make(chan struct{}, 1)}
}

var errStreamEnded = errors.New("the peer has ended the stream")

// room waits until some of n bytes may be sent, and returns how many. It fails if no bytes may be sent
// within stall.
func (a *ahead) room(n int, stall time.Duration) (int, error) {
	late := time.NewTimer(stall)
	defer late.Stop()
	for {
		a.mu.Lock()
		may := a.flight.room(n)
		a.mu.Unlock()
		if may > 0 {
			return may, nil
		}
		select {
		case <-a.changed:
		case <-a.over:
			return 0, errStreamEnded
		case <-late.C:
			return 0, errSendTimeout
		}
	}
}

func (a *ahead) sent(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.flight.recordSent(n, time.Since(a.begun))
}

// arrived records how many bytes the remote has received. It returns false if that number is impossible.
func (a *ahead) arrived(bytes uint64) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.flight.arrived(bytes, time.Since(a.begun)) {
		return false
	}
	background.Notify(a.changed)
	return true
}

// end records that no more reports will come.
func (a *ahead) end() {
	if a != nil {
		close(a.over)
	}
}
