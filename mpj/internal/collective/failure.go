package collective

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

// A collective that fails at one rank also fails at the ranks that wait for it:
//
//	rank 0 --- 8 bytes ---> rank 2, which expects 16: it fails
//	                          |-- notice, reason --> 0, 1, 3
//	rank 3 waits for rank 2 <-'   and fails with the reason of rank 2
//
// The failed rank sends two messages to every rank, in the context of the collective. A rank that
// receives from the failed rank next gets them instead of the expected message, also fails, and in
// turn notifies every rank. A rank that needs no more messages completes the collective, and fails
// in a later collective. Messages to a failed rank are discarded, so no sender waits for it.
//
// Ranks that choose different algorithms, because they have different lengths, may wait in a cycle
// that does not contain the failed rank. The engine therefore ends every wait in the context when a
// failure notice arrives, from any rank. With replicas it does not, because the result would depend
// on timing. A cycle in which no rank has received a wrong message, so that no rank has failed, is
// not resolved. P2PMPI_CHECK compares lengths before any rank can wait.
//
// From then on, the context is unusable at that rank: later collectives in it fail at once with the
// same reason.

// Tags of these messages, which no call uses.
const (
	noticeTag = engineapi.NoticeTag // empty, so that it fits every buffer; the reason follows
	reasonTag = engineapi.ReasonTag
)

// A FailedError reports that a collective has failed at another rank, or that an earlier collective
// has failed.
type FailedError struct {
	Rank  int  // rank that failed first
	Call  Call // call that failed at that rank
	Cause error
}

// Error names the rank that failed first, and its reason.
func (e *FailedError) Error() string {
	return fmt.Sprintf("%v has failed at rank %d: %v", e.Call, e.Rank, e.Cause)
}

// Unwrap returns the cause at the rank that failed first.
func (e *FailedError) Unwrap() error { return e.Cause }

// A Failures records failures in the contexts of a communicator. Several goroutines may use it.
type Failures struct {
	any       atomic.Bool
	mu        sync.Mutex
	byContext map[uint32]*FailedError
}

func (s *Failures) note(context uint32, e *FailedError) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byContext == nil {
		s.byContext = make(map[uint32]*FailedError)
	}
	s.byContext[context] = e
	s.any.Store(true)
}

// in returns the failure in a context, or nil.
func (s *Failures) in(context uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byContext[context]; e != nil {
		return e
	}
	return nil
}

// carryOut carries out a call. If the call fails at this rank, carryOut notifies the others. It
// fails at once if an earlier call in the same context has failed, of which the others have already
// been notified.
func (t *Team) carryOut(call Call, algorithm func() error) error {
	t.call = call
	if t.Failures != nil && t.Failures.any.Load() {
		if err := t.Failures.in(t.Context); err != nil {
			return err
		}
	}
	err := algorithm()
	if err != nil {
		t.announce(err)
	}
	return err
}

// announce notifies all other members that the call has failed at this rank. It ignores errors of
// sends, because the receiver has also failed or the engine has stopped.
func (t *Team) announce(err error) {
	var s *FailedError
	if !errors.As(err, &s) {
		s = &FailedError{Rank: t.name(t.Rank), Call: t.call, Cause: err}
	}
	reason := s.encode()
	for k := 1; k < t.Size; k++ { // the engine completes these requests without a wait
		dest := t.world(t.up(k))
		if _, err := t.Engine.Isend(t.Context, dest, noticeTag, nil, engineapi.Standard); err == nil {
			t.Engine.Isend(t.Context, dest, reasonTag, reason, engineapi.Standard)
		}
	}
	t.Engine.Abandon(t.Context)
	t.Failures.note(t.Context, s)
}

// cause returns the cause of an error of the engine. If a failure notice ended a wait, cause receives
// the notice and its reason, and returns the failure at the other rank.
func (t *Team) cause(err error) error {
	if !errors.Is(err, engineapi.ErrNotice) {
		return err
	}
	s, err := t.Engine.Recv(t.Context, engineapi.AnySource, noticeTag, nil)
	if err != nil {
		return err
	}
	return t.reason(s.Source)
}

// PendingReason returns the reason of a failure at a world rank, whose notice has arrived but has
// not been received.
func PendingReason(e *engine.Engine, context uint32, world int) error {
	if _, err := e.Recv(context, world, noticeTag, nil); err != nil {
		return err
	}
	return (&Team{Engine: e, Context: context}).reason(world)
}

// reason receives the reason of a world rank that has just announced a failure.
func (t *Team) reason(world int) error {
	b := make([]byte, engineapi.ReasonMost)
	s, err := t.Engine.Recv(t.Context, world, reasonTag, b)
	if err != nil {
		return fmt.Errorf("a collective has failed at another rank, for an unreadable reason: %w", err)
	}
	failed, err := decodeFailed(b[:s.Size])
	if err != nil {
		return fmt.Errorf("a collective has failed at another rank: %w", err)
	}
	return failed
}

// Kinds of causes in messages.
const (
	causeText = iota
	causeMismatch
	causeOrder
)

// encode returns e as a message: kind, rank and call, followed by four numbers or the text.
func (e *FailedError) encode() []byte {
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
	return b[:min(len(b), engineapi.ReasonMost)]
}

var errReason = errors.New("malformed reason")

// decodeFailed decodes the output of encode.
func decodeFailed(b []byte) (*FailedError, error) {
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
	e := &FailedError{Rank: v[0], Call: Call(v[1])}
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

// A Role states which part of a failure notice a message is.
type Role int

// The messages of a failure; all other messages are Nothing.
const (
	Nothing Role = iota
	Failure      // first message
	Reason       // second message
)

// RoleOf returns the role of a message with the given tag.
func RoleOf(tag int32) Role {
	switch tag {
	case noticeTag:
		return Failure
	case reasonTag:
		return Reason
	}
	return Nothing
}
