package collective

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

func reasons() []*FailedError {
	return []*FailedError{
		{Rank: 2, Call: rooted(Bcast, 1), Cause: errors.New("no room")},
		{Rank: 0, Call: unrooted(Barrier), Cause: &OrderError{From: 1, To: 0, Got: rooted(Reduce, 3), Want: unrooted(Barrier)}},
		{Rank: 77, Call: unrooted(Alltoall), Cause: &MismatchError{From: 5, To: 77, Got: 8, Want: 1 << 40}},
	}
}

func TestReasonsRoundTrip(t *testing.T) {
	for _, e := range reasons() {
		got, err := decodeFailed(e.encode())
		if err != nil || !reflect.DeepEqual(got.Error(), e.Error()) || reflect.TypeOf(got.Cause) != reflect.TypeOf(e.Cause) {
			t.Errorf("got %v and %v, want %v", got, err, e)
		}
	}
	long := &FailedError{Cause: errors.New(strings.Repeat("x", 2*engineapi.ReasonMost))}
	if got := long.encode(); len(got) != engineapi.ReasonMost {
		t.Errorf("a long reason has %d bytes, want %d", len(got), engineapi.ReasonMost)
	}
}

// FuzzDecodeFailed checks that a decoded message encodes to an equivalent message.
func FuzzDecodeFailed(f *testing.F) {
	for _, e := range reasons() {
		f.Add(e.encode())
	}
	f.Add([]byte{})
	f.Add([]byte{9, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeFailed(b)
		if err != nil {
			return
		}
		again, err := decodeFailed(e.encode())
		if err != nil || len(b) < engineapi.ReasonMost/4 && again.Error() != e.Error() {
			t.Errorf("%q became %v, then %v (%v)", b, e, again, err)
		}
	})
}
