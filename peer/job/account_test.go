package job

import (
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// accountsOf returns the accounts of a job of one rank with the given number of replicas that
// count. The user has received the output got.
func accountsOf(counting int, got Printed) *Accounts {
	return &Accounts{
		of: make(map[view.Process]Account), odd: make(map[view.Process]bool),
		Name:  func(p view.Process) string { return p.String() },
		Shown: func(int) (Printed, bool) { return got, true },
		Counting: func(int) (ps []view.Process) {
			for k := range counting {
				ps = append(ps, proc(0, k))
			}
			return ps
		},
	}
}

// TestJudgeAccounts passes the accounts of the replicas of one rank to Judge, and checks the result.
func TestJudgeAccounts(t *testing.T) {
	sent := func(counts ...uint64) (a Account) {
		a.Summed = true
		for i, n := range counts {
			a.Sums = append(a.Sums, protection.Sum{Context: 256, Dest: i, Count: n, Digest: n})
		}
		return a
	}
	wrote := func(n uint64) Account { return Account{Digested: true, Printed: Printed{Bytes: n}} }
	unknown := Account{}
	tests := []struct {
		name     string
		counting int
		said     []Account // by replica
		stops    string    // part of the result's message, or empty if the job succeeds
		odd      []int
		told     int // number of reported differences
	}{
		{"no account", 2, nil, "", nil, 0},
		{"one account", 2, []Account{sent(1)}, "", nil, 0},
		{"two agree", 2, []Account{sent(1, 2), sent(1, 2)}, "", nil, 0},
		{"one of two has sent more", 2, []Account{sent(1, 2), sent(1, 3)}, "0.0 has sent 2 messages to rank 1 on communicator 1 (slot 0)", nil, 1},
		{"one of two has sent to an additional rank", 2, []Account{sent(1), sent(1, 3)}, "sent 0 messages to rank 1", nil, 1},
		{"one account is incomplete", 2, []Account{sent(1), unknown}, "", nil, 0},
		{"one of three has sent less", 3, []Account{sent(2), sent(1), sent(2)}, "", []int{1}, 2},
		{"the first of three has sent less", 3, []Account{sent(1), sent(2), sent(2)}, "", []int{0}, 2},
		{"all three differ", 3, []Account{sent(1), sent(2), sent(3)}, "have diverged", nil, 2},
		{"two of three differ, one account missing", 3, []Account{sent(1), sent(2)}, "have diverged", nil, 1},
		{"two of three agree, one account missing", 3, []Account{sent(1), sent(1)}, "", nil, 0},
		{"two of five differ", 5, []Account{sent(1), sent(1), sent(2), sent(3), sent(1)}, "", []int{2, 3}, 3},
		{"both printed the same", 2, []Account{wrote(7), wrote(7)}, "", nil, 0},
		{"one of two printed something else", 2, []Account{wrote(7), wrote(8)}, "0.0 has printed 7 bytes", nil, 1},
		{"one of three printed something else", 3, []Account{wrote(8), wrote(7), wrote(7)}, "", []int{0}, 2},
		{"shown output differs from the majority's", 3, []Account{wrote(7), wrote(8), wrote(8)}, "the user has received 7 bytes", nil, 2},
		{"shown output that no replica printed", 2, []Account{wrote(8), wrote(8)}, "the user has received 7 bytes", nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := accountsOf(tt.counting, Printed{Bytes: 7})
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
				t.Errorf("%d differences reported, want %d", told, tt.told)
			}
		})
	}
}

// TestJudgeWaitsForTheThirdReplica checks that two of three replicas that differ decide nothing
// before the third.
func TestJudgeWaitsForTheThirdReplica(t *testing.T) {
	for counting, stops := range map[int]bool{2: true, 3: false} {
		a := accountsOf(counting, Printed{})
		a.Add(proc(0, 0), Account{Summed: true})
		a.Add(proc(0, 1), Account{Summed: true, Sums: []protection.Sum{{Count: 1}}})
		if _, r := a.Judge(1, false); (r != nil) != stops {
			t.Errorf("two of %d replicas differ: result %+v", counting, r)
		}
	}
}

func TestAccountsAreComparedOnlyIfRequested(t *testing.T) {
	a := accountsOf(2, Printed{})
	a.Tolerant = true
	a.Add(proc(0, 0), Account{Summed: true})
	note := a.Add(proc(0, 1), Account{Summed: true, Sums: []protection.Sum{{Count: 1}}})
	if _, r := a.Judge(1, true); note == "" || r != nil {
		t.Errorf("note %q, result %+v", note, r)
	}
}

// TestV4AnswerIsConfirmedByMajority: equal accounts of more than half of the live replicas confirm an
// answer.
func TestV4AnswerIsConfirmedByMajority(t *testing.T) {
	wrote := func(n uint64) *Account { return &Account{Digested: true, Printed: Printed{Bytes: n}} }
	for name, tt := range map[string]struct {
		said    []*Account // by live replica; nil for a replica that has not ended
		missing []view.Process
	}{
		"the only replica has ended":   {[]*Account{wrote(1)}, nil},
		"one of two has ended":         {[]*Account{wrote(1), nil}, []view.Process{proc(0, 1)}},
		"both have ended":              {[]*Account{wrote(1), wrote(1)}, nil},
		"both have ended, and differ":  {[]*Account{wrote(1), wrote(2)}, nil},
		"one of three has ended":       {[]*Account{nil, wrote(1), nil}, []view.Process{proc(0, 0), proc(0, 2)}},
		"two of three have ended":      {[]*Account{wrote(1), nil, wrote(1)}, nil},
		"two of three end, and differ": {[]*Account{wrote(1), nil, wrote(2)}, []view.Process{proc(0, 1)}},
		"two of four have ended":       {[]*Account{wrote(1), wrote(1), nil, nil}, []view.Process{proc(0, 2), proc(0, 3)}},
		"all three end, and two agree": {[]*Account{wrote(1), wrote(2), wrote(1)}, nil},
	} {
		a := accountsOf(len(tt.said), Printed{Bytes: 1})
		var alive []view.Process
		for k, said := range tt.said {
			if alive = append(alive, proc(0, k)); said != nil {
				a.Add(proc(0, k), *said)
			}
		}
		if got := a.Unconfirmed(alive); !slices.Equal(got, tt.missing) {
			t.Errorf("%s: missing %v, want %v", name, got, tt.missing)
		}
	}
}

// TestV4OneOfThreeThatEndsEarlyIsNotDecisive: the job continues until half of three or more
// replicas have ended.
func TestV4OneOfThreeThatEndsEarlyIsNotDecisive(t *testing.T) {
	for _, c := range []struct {
		alive, ended int
		premature    bool
	}{{1, 1, false}, {2, 1, false}, {3, 1, true}, {3, 2, false}, {4, 1, true}, {4, 2, false}} {
		a := accountsOf(c.alive, Printed{})
		var alive []view.Process
		for k := range c.alive {
			if alive = append(alive, proc(0, k)); k < c.ended {
				a.Add(proc(0, k), Account{Digested: true})
			}
		}
		if got := a.Premature(alive); got != c.premature {
			t.Errorf("%d of %d have ended: premature is %v, want %v", c.ended, c.alive, got, c.premature)
		}
	}
}
