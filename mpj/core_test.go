package mpj

import (
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
)

// TestConstantsAreThoseOfCore checks the values that package core also defines. They are written out in this package,
// where programmers read them.
func TestConstantsAreThoseOfCore(t *testing.T) {
	got := []int{AnySource, AnyTag, ProcNull, Undefined, MaxTag, int(Identical), int(Congruent), int(Similar), int(Unequal), BsendOverhead}
	want := []int{core.AnySource, core.AnyTag, core.ProcNull, core.Undefined, core.MaxTag,
		int(core.Identical), int(core.Congruent), int(core.Similar), int(core.Unequal), core.BsendOverhead}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	classes := map[Class]core.Class{
		ErrArg: core.ErrArg, ErrComm: core.ErrComm, ErrDeadlock: core.ErrDeadlock, ErrDims: core.ErrDims, ErrGroup: core.ErrGroup,
		ErrKeyval: core.ErrKeyval, ErrTopology: core.ErrTopology, ErrBuffer: core.ErrBuffer, ErrCount: core.ErrCount,
		ErrFinalized: core.ErrFinalized, ErrOther: core.ErrOther, ErrPending: core.ErrPending, ErrOp: core.ErrOp, ErrRank: core.ErrRank,
		ErrRoot: core.ErrRoot, ErrTag: core.ErrTag, ErrTruncate: core.ErrTruncate, ErrType: core.ErrType, ErrContext: core.ErrContext,
		ErrRequest: core.ErrRequest, ErrUnsupported: core.ErrUnsupported,
	}
	for class, c := range classes {
		if class.Error() != c.Error() {
			t.Errorf("got %q, want %q", class, c)
		}
	}
}

// nothing is the status of a receive from ProcNull.
var nothing = Status(core.NullStatus)
