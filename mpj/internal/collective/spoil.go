package collective

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/p2pmpi/p2pmpi/mpj/internal/seam/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/words"
)

// A collective that fails at one rank fails at those that wait for it:
//
//	rank 0 --- 8 bytes ---> rank 2, which expects 16: it fails
//	                          |-- spoiled, reason --> 0, 1, 3
//	rank 3 waits for rank 2 <-'   and fails with the reason of rank 2
//
// Two messages to everybody say so, in the context of the collective: whoever
// receives from that rank next gets them in place of what it waits for, fails
// likewise, and tells everybody in turn. A rank that has all it needs completes,
// and hears of it in a later collective. What is sent to a rank that has failed is
// thrown away, so that nobody waits to send either.
//
// Ranks that choose different algorithms, because they have different lengths,
// may wait in a circle that the first rank is not in. So the engine ends every
// wait in the context when the news comes, from wherever. With replicas it does
// not, since what each sees then would depend on timing. A circle in which no
// rank has failed, because no wrong message is received, remains in any case:
// P2PMPI_CHECK compares lengths before anybody can wait.
//
// The context is of no use from then on, at that rank: later collectives in it
// fail at their beginning, with the same reason.

// Tags of these messages: no call has them.
const (
	spoiledTag = words.NewsTag // empty, so that it fits every buffer; its reason follows
	reasonTag  = words.ReasonTag
)

// A SpoiledError says that a collective has failed at another rank, or earlier.
type SpoiledError struct {
	Rank  int  // where it failed first
	Call  Call // that failed there
	Cause error
}

// Error names the first rank, and its reason.
func (e *SpoiledError) Error() string {
	return fmt.Sprintf("%v has failed at rank %d: %v", e.Call, e.Rank, e.Cause)
}

// Unwrap returns what went wrong at the first rank.
func (e *SpoiledError) Unwrap() error { return e.Cause }

// A Spoils has what failed in the contexts of a communicator. It is for several
// goroutines.
type Spoils struct {
	any  atomic.Bool
	mu   sync.Mutex
	what map[uint32]*SpoiledError // by context
}

func (s *Spoils) note(context uint32, e *SpoiledError) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.what == nil {
		s.what = make(map[uint32]*SpoiledError)
	}
	s.what[context] = e
	s.any.Store(true)
}

// in returns what failed in a context, or nil.
func (s *Spoils) in(context uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.what[context]; e != nil {
		return e
	}
	return nil
}

// begin begins a call. It is an error when one in the same context has failed
// before: the others have been told then.
func (t *Team) begin(call Call) error {
	t.call = call
	if t.Spoils == nil || !t.Spoils.any.Load() {
		return nil
	}
	return t.Spoils.in(t.Context)
}

// end ends a call. It tells the others when there is an error.
func (t *Team) end(err error) error {
	if err != nil {
		t.spoil(err)
	}
	return err
}

// spoil tells all others that the call has failed here. Those that cannot be told
// have failed themselves, or the engine has stopped here.
func (t *Team) spoil(err error) {
	var s *SpoiledError
	if !errors.As(err, &s) {
		s = &SpoiledError{Rank: t.name(t.Rank), Call: t.call, Cause: err}
	}
	reason := s.encode()
	for k := 1; k < t.Size; k++ { // the requests are the engine's: nobody waits for them
		dest := t.world(t.up(k))
		if _, err := t.Engine.Isend(t.Context, dest, spoiledTag, nil, words.Standard); err == nil {
			t.Engine.Isend(t.Context, dest, reasonTag, reason, words.Standard)
		}
	}
	t.Engine.Abandon(t.Context)
	t.Spoils.note(t.Context, s)
}

// heard returns what is behind an error of the engine: where news has ended a
// wait, that some rank has failed, and why.
func (t *Team) heard(err error) error {
	if !errors.Is(err, words.ErrNews) {
		return err
	}
	s, err := t.Engine.Recv(t.Context, words.AnySource, spoiledTag, nil)
	if err != nil {
		return err
	}
	return t.reason(s.Source)
}

// LeftNews returns why a collective has failed at a rank of the world whose news
// has come and which nobody here has received.
func LeftNews(e *engine.Engine, context uint32, world int) error {
	if _, err := e.Recv(context, world, spoiledTag, nil); err != nil {
		return err
	}
	return (&Team{Engine: e, Context: context}).reason(world)
}

// reason receives why a rank of the world has failed, which it has just said.
func (t *Team) reason(world int) error {
	b := make([]byte, words.ReasonMost)
	s, err := t.Engine.Recv(t.Context, world, reasonTag, b)
	if err != nil {
		return fmt.Errorf("a collective has failed elsewhere, for a reason that cannot be read: %w", err)
	}
	spoiled, err := decodeSpoiled(b[:s.Size])
	if err != nil {
		return fmt.Errorf("a collective has failed elsewhere: %w", err)
	}
	return spoiled
}

// Kinds of causes on their way.
const (
	causeText = iota
	causeMismatch
	causeOrder
)

// encode returns e as a message: kind, rank and call, then four numbers, or the
// text.
func (e *SpoiledError) encode() []byte {
	var mismatch *MismatchError
	var order *OrderError
	kind, numbers := causeText, []int(nil)
	switch {
	case errors.As(e.Cause, &mismatch):
		kind, numbers = causeMismatch, []int{mismatch.From, mismatch.To, mismatch.Got, mismatch.Want}
	case errors.As(e.Cause, &order):
		kind, numbers = causeOrder, []int{order.From, order.To, int(order.Got), int(order.Want)}
	}
	b := binary.AppendVarint([]byte{byte(kind)}, int64(e.Rank))
	b = binary.AppendVarint(b, int64(e.Call))
	for _, n := range numbers {
		b = binary.AppendVarint(b, int64(n))
	}
	if kind == causeText {
		b = append(b, e.Cause.Error()...)
	}
	return b[:min(len(b), words.ReasonMost)]
}

var errReason = errors.New("its reason is malformed")

// decodeSpoiled reads what encode has written.
func decodeSpoiled(b []byte) (*SpoiledError, error) {
	if len(b) == 0 {
		return nil, errReason
	}
	kind, b := b[0], b[1:]
	count := 2
	if kind == causeMismatch || kind == causeOrder {
		count = 6
	}
	var v [6]int
	for i := range count {
		n, size := binary.Varint(b)
		if size <= 0 {
			return nil, errReason
		}
		v[i], b = int(n), b[size:]
	}
	e := &SpoiledError{Rank: v[0], Call: Call(v[1])}
	switch kind {
	case causeText:
		e.Cause = errors.New(strings.ToValidUTF8(string(b), "?"))
	case causeMismatch:
		e.Cause = &MismatchError{From: v[2], To: v[3], Got: v[4], Want: v[5]}
	case causeOrder:
		e.Cause = &OrderError{From: v[2], To: v[3], Got: Call(v[4]), Want: Call(v[5])}
	default:
		return nil, errReason
	}
	return e, nil
}

// A News is what a message says of a failure.
type News int

// The messages of a failure; all others are Nothing.
const (
	Nothing News = iota
	Failure      // the first
	Reason       // the second
)

// NewsOf returns what a message with a tag says.
func NewsOf(tag int32) News {
	switch tag {
	case spoiledTag:
		return Failure
	case reasonTag:
		return Reason
	}
	return Nothing
}
