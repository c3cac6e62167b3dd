package job

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// accountsOf returns the accounts of a job of one rank with the given number of replicas that
// count; got is the output that the user has got.
func accountsOf(counting int, got printed) *accounts {
	return &accounts{
		of: make(map[view.Process]account), odd: make(map[view.Process]bool),
		name:  func(p view.Process) string { return p.String() },
		shown: func(int) (printed, bool) { return got, true },
		counting: func(int) (ps []view.Process) {
			for k := range counting {
				ps = append(ps, proc(0, k))
			}
			return ps
		},
	}
}

// TestAccounts passes the accounts of the replicas of one rank to Judge, and checks the final
// verdict.
func TestAccounts(t *testing.T) {
	sent := func(counts ...uint64) (a account) {
		a.Summed = true
		for i, n := range counts {
			a.Sums = append(a.Sums, protection.Sum{Context: 256, Dest: i, Count: n, Digest: n})
		}
		return a
	}
	wrote := func(n uint64) account { return account{Digested: true, Printed: printed{Bytes: n}} }
	unknown := account{}
	tests := []struct {
		name     string
		counting int
		said     []account // by replica
		stops    string    // part of the result's message; empty: the job succeeds
		odd      []int
		told     int // number of reported differences
	}{
		{"nobody has said anything", 2, nil, "", nil, 0},
		{"one has", 2, []account{sent(1)}, "", nil, 0},
		{"two agree", 2, []account{sent(1, 2), sent(1, 2)}, "", nil, 0},
		{"one of two has sent more", 2, []account{sent(1, 2), sent(1, 3)}, "0.0 has sent 2 messages to rank 1 on communicator 1 (slot 0)", nil, 1},
		{"one of two has sent to one rank more", 2, []account{sent(1), sent(1, 3)}, "sent 0 messages to rank 1", nil, 1},
		{"one does not know", 2, []account{sent(1), unknown}, "", nil, 0},
		{"one of three has sent less", 3, []account{sent(2), sent(1), sent(2)}, "", []int{1}, 2},
		{"the first of three", 3, []account{sent(1), sent(2), sent(2)}, "", []int{0}, 2},
		{"three different ones", 3, []account{sent(1), sent(2), sent(3)}, "have diverged", nil, 2},
		{"two of three differ, and one says nothing", 3, []account{sent(1), sent(2)}, "have diverged", nil, 1},
		{"two of three agree, and one says nothing", 3, []account{sent(1), sent(1)}, "", nil, 0},
		{"two of five", 5, []account{sent(1), sent(1), sent(2), sent(3), sent(1)}, "", []int{2, 3}, 3},
		{"printed alike", 2, []account{wrote(7), wrote(7)}, "", nil, 0},
		{"printed something else", 2, []account{wrote(7), wrote(8)}, "0.0 has printed 7 bytes", nil, 1},
		{"one of three prints something else", 3, []account{wrote(8), wrote(7), wrote(7)}, "", []int{0}, 2},
		{"the user has got what most have not printed", 3, []account{wrote(7), wrote(8), wrote(8)}, "the user has got 7 bytes", nil, 2},
		{"the user has got what nobody has printed", 2, []account{wrote(8), wrote(8)}, "the user has got 7 bytes", nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := accountsOf(tt.counting, printed{Bytes: 7})
			told := 0
			for k, x := range tt.said {
				if a.Add(proc(0, k), x) != "" {
					told++
				}
			}
			_, r := a.Judge(1, true)
			if (r != nil) != (tt.stops != "") || r != nil && (!strings.Contains(r.Message, tt.stops) || r.Status != StatusDiverged) {
				t.Errorf("result %+v, want %q", r, tt.stops)
			}
			if r == nil && len(a.odd) != len(tt.odd) {
				t.Errorf("odd: %v, want %v", a.odd, tt.odd)
			}
			for _, k := range tt.odd {
				if !a.odd[proc(0, k)] {
					t.Errorf("0.%d is not odd", k)
				}
			}
			if told != tt.told {
				t.Errorf("%d differences told, want %d", told, tt.told)
			}
		})
	}
}

// TestAccountsWaitForTheThird checks that two of three replicas that differ decide nothing before
// the third.
func TestAccountsWaitForTheThird(t *testing.T) {
	for counting, stops := range map[int]bool{2: true, 3: false} {
		a := accountsOf(counting, printed{})
		a.Add(proc(0, 0), account{Summed: true})
		a.Add(proc(0, 1), account{Summed: true, Sums: []protection.Sum{{Count: 1}}})
		if _, r := a.Judge(1, false); (r != nil) != stops {
			t.Errorf("of %d replicas two differ: result %+v", counting, r)
		}
	}
}

func TestAccountsAreOnlyToldWhenTheUserWantsThat(t *testing.T) {
	a := accountsOf(2, printed{})
	a.tolerant = true
	a.Add(proc(0, 0), account{Summed: true})
	note := a.Add(proc(0, 1), account{Summed: true, Sums: []protection.Sum{{Count: 1}}})
	if _, r := a.Judge(1, true); note == "" || r != nil {
		t.Errorf("note %q, result %+v", note, r)
	}
}

// FuzzAccount checks that decoded accounts are of bounded size and in order.
func FuzzAccount(f *testing.F) {
	v := view.New(2, 2)
	many := make([]*jobpb.Sum, protection.MaxSums+1)
	for i := range many {
		many[i] = &jobpb.Sum{Context: uint32(i)}
	}
	for _, m := range []*jobpb.Account{
		{}, {Digested: true}, {Digested: true, Digest: make([]byte, 32)}, {Digest: make([]byte, 99)}, {Sums: many},
		{Summed: true, Sums: []*jobpb.Sum{{Context: 1, Dest: 1}, {Context: 1, Dest: 0}}}, {Sums: []*jobpb.Sum{{Dest: 2}}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m jobpb.Account
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		a, err := accountOf(&m, v)
		if err != nil {
			return
		}
		if err := protection.ValidSums(a.Sums, v); err != nil || len(a.Sums) != len(m.Sums) {
			t.Errorf("%v was taken: %v", a.Sums, err)
		}
		if x, y, unlike := protection.Unlike(a.Sums, a.Sums); unlike {
			t.Errorf("%v is unlike %v", x, y)
		}
	})
}

// TestV4AnswerIsConfirmedByMost: equal accounts of more than half of the live replicas confirm an
// answer.
func TestV4AnswerIsConfirmedByMost(t *testing.T) {
	wrote := func(n uint64) *account { return &account{Digested: true, Printed: printed{Bytes: n}} }
	for name, tt := range map[string]struct {
		said    []*account // by live replica; nil: it has not ended
		missing []view.Process
	}{
		"the only one has ended":            {[]*account{wrote(1)}, nil},
		"one of two has ended":              {[]*account{wrote(1), nil}, []view.Process{proc(0, 1)}},
		"both have ended":                   {[]*account{wrote(1), wrote(1)}, nil},
		"both have ended, and differ":       {[]*account{wrote(1), wrote(2)}, nil},
		"one of three has ended":            {[]*account{nil, wrote(1), nil}, []view.Process{proc(0, 0), proc(0, 2)}},
		"two of three have ended":           {[]*account{wrote(1), nil, wrote(1)}, nil},
		"two of three have, and differ":     {[]*account{wrote(1), nil, wrote(2)}, []view.Process{proc(0, 1)}},
		"two of four have ended":            {[]*account{wrote(1), wrote(1), nil, nil}, []view.Process{proc(0, 2), proc(0, 3)}},
		"all three have, and two are alike": {[]*account{wrote(1), wrote(2), wrote(1)}, nil},
	} {
		a := accountsOf(len(tt.said), printed{Bytes: 1})
		var alive []view.Process
		for k, said := range tt.said {
			if alive = append(alive, proc(0, k)); said != nil {
				a.Add(proc(0, k), *said)
			}
		}
		if got := a.Unconfirmed(alive); !slices.Equal(got, tt.missing) {
			t.Errorf("%s: missing are %v, want %v", name, got, tt.missing)
		}
	}
}

// TestV4OneOfThreeThatEndsEarlyProvesNothing: the job continues until half of three or more replicas have ended.
func TestV4OneOfThreeThatEndsEarlyProvesNothing(t *testing.T) {
	for _, c := range []struct {
		alive, ended int
		premature    bool
	}{{1, 1, false}, {2, 1, false}, {3, 1, true}, {3, 2, false}, {4, 1, true}, {4, 2, false}} {
		a := accountsOf(c.alive, printed{})
		var alive []view.Process
		for k := range c.alive {
			if alive = append(alive, proc(0, k)); k < c.ended {
				a.Add(proc(0, k), account{Digested: true})
			}
		}
		if got := a.Premature(alive); got != c.premature {
			t.Errorf("%d of %d have ended: premature is %v, want %v", c.ended, c.alive, got, c.premature)
		}
	}
}
