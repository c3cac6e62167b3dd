package collective

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inTeam runs program as every member of a team of n.
func inTeam(n int, program func(*Team) error) error {
	return localworld.New(context.Background(), localworld.Config{Ranks: n, Replicas: 1, Rings: true}).Run(
		func(p view.Process, e *engine.Engine) error {
			if err := program(&Team{Engine: e, Context: 256, Rank: p.Rank, Size: n}); err != nil {
				return err
			}
			return e.Flush()
		})
}

// ordered combines runs of ranks, given by from and to, and reports an error if two runs are not
// consecutive.
func ordered(t *testing.T) Reduction {
	return Reduction{Size: 2, Combine: func(in, inout []byte) {
		for i := 0; i < len(in); i += 2 {
			if in[i+1] != inout[i] {
				t.Errorf("ranks %d..%d are combined with %d..%d", in[i], in[i+1], inout[i], inout[i+1])
			}
			inout[i] = in[i]
		}
	}}
}

// TestRunsJoinInOrder checks that the runs of every division of the ranks combine to one run, and
// that only neighbouring runs are combined.
func TestRunsJoinInOrder(t *testing.T) {
	for n := 1; n <= 33; n++ {
		for a := 0; a <= n; a++ {
			for b := a; b <= n; b++ {
				if got := len(cover(nil, a, b, n)); got > mostNodes(n) {
					t.Errorf("n=%d: %d..%d has %d nodes, more than %d", n, a, b, got, mostNodes(n))
				}
			}
			r := run{n: n, size: 2, values: make([]byte, 2*(mostNodes(n)+1))}
			nodes := cover(cover(nil, 0, a, n), a, n, n)
			for _, node := range nodes {
				r.add(ordered(t), node, []byte{byte(node[0]), byte(node[1])})
			}
			if got := r.held(); !slices.Equal(got, []byte{0, byte(n)}) {
				t.Errorf("n=%d, divided at %d: got %v of %v", n, a, got, nodes)
			}
		}
	}
}

// TestRunConsistsOfItsCoveringNodes checks that adding the ranks of a run one by one results in the
// nodes that cover the run. Both ends of a message can therefore compute which nodes it contains.
func TestRunConsistsOfItsCoveringNodes(t *testing.T) {
	for n := 1; n <= 33; n++ {
		for a := range n {
			r := run{n: n, size: 2, values: make([]byte, 2*(mostNodes(n)+1))}
			for b := a + 1; b <= n; b++ {
				r.add(ordered(t), [2]int{b - 1, b}, []byte{byte(b - 1), byte(b)})
				if wanted := cover(nil, a, b, n); !slices.Equal(r.nodes, wanted) {
					t.Errorf("n=%d: ranks %d..%d are held as %v, want %v", n, a, b, r.nodes, wanted)
				}
			}
		}
	}
}

func TestTableNamesKnownAlgorithms(t *testing.T) {
	for op, rules := range table {
		for i, r := range rules {
			if !slices.Contains(usable[op], r.use) {
				t.Errorf("%v has no %v", Operation(op), r.use)
			}
			if slices.ContainsFunc(rules[:i], func(before rule) bool { return before.bytes >= r.bytes && before.size <= r.size }) {
				t.Errorf("%v: the rule up to %d for %d ranks is never reached", Operation(op), r.bytes, r.size)
			}
		}
	}
}

func TestForce(t *testing.T) {
	cases := []struct{ in, says string }{
		{"", ""},
		{"allreduce=ring", ""},
		{" bcast = chain , barrier=levels", ""},
		{"bcast", `unknown algorithm "bcast" of bcast: want one of [binomial scatter-allgather chain levels]`},
		{"bcast=ring", `unknown algorithm "bcast=ring" of bcast`},
		{"bcast=", `unknown algorithm`},
		{"broadcast=ring", `unknown collective "broadcast=ring": want one of barrier, bcast, `},
		{"bcast=chain,", `unknown collective ""`},
	}
	for _, c := range cases {
		_, err := Force(c.in)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%q: got %v, want %q", c.in, err, c.says)
		}
	}
}

func TestLevelsAreForSeveralMachines(t *testing.T) {
	cases := []struct {
		name       string
		machines   []int
		clusters   []int
		none       bool
		contiguous bool
	}{
		{"one machine", []int{4, 4, 4}, []int{1, 1, 1}, true, false},
		{"one rank per machine", []int{1, 2, 3}, []int{1, 1, 1}, true, false},
		{"two machines", []int{1, 1, 3}, []int{1, 1, 1}, false, true},
		{"round robin", []int{1, 2, 1}, []int{1, 1, 1}, false, false},
		{"two clusters", []int{1, 2, 3}, []int{1, 1, 2}, false, true},
		{"a machine in two clusters", []int{1, 1, 1}, []int{1, 1, 2}, true, false},
	}
	for _, c := range cases {
		l := NewLevels(3, func(i int) (int, int) { return c.machines[i], c.clusters[i] })
		if (l == nil) != c.none || l != nil && l.contiguous != c.contiguous {
			t.Errorf("%s: the levels are %+v", c.name, l)
		}
	}
}

// TestMismatchNamesBothRanks checks that the error for mismatched lengths uses the ranks of the
// whole team.
func TestMismatchNamesBothRanks(t *testing.T) {
	for _, lengths := range [][2]int{{8, 16}, {16, 8}} {
		err := inTeam(3, func(t *Team) error {
			l := NewLevels(3, func(rank int) (int, int) { return rank / 2, 0 })
			t.Levels = l
			return t.Bcast(make([]byte, lengths[t.Rank/2]), 0)
		})
		if says := fmt.Sprintf("rank 0 sent %d bytes where rank 2 expects %d", lengths[0], lengths[1]); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %s", err, says)
		}
	}
}

// BenchmarkAlgorithms measures the time of one call for every algorithm. The values in table are
// based on its results.
func BenchmarkAlgorithms(b *testing.B) {
	sum := Reduction{Size: 1, Combine: func(in, inout []byte) {
		for i, v := range in {
			inout[i] += v
		}
	}}
	calls := map[Operation]func(t *Team, send, recv []byte) error{
		Barrier:       func(t *Team, _, _ []byte) error { return t.Barrier() },
		Bcast:         func(t *Team, send, _ []byte) error { return t.Bcast(send, 0) },
		Gather:        func(t *Team, send, recv []byte) error { return t.Gather(send, recv, Even(len(send)), 0) },
		Scatter:       func(t *Team, send, recv []byte) error { return t.Scatter(recv, Even(len(send)), send, 0) },
		Allgather:     func(t *Team, send, recv []byte) error { return t.Allgather(recv, Even(len(send))) },
		Alltoall:      alltoallOf,
		Reduce:        func(t *Team, send, recv []byte) error { return t.Reduce(send, recv[:len(send)], sum, 0) },
		Allreduce:     func(t *Team, send, recv []byte) error { return t.Allreduce(send, recv[:len(send)], sum) },
		ReduceScatter: func(t *Team, send, recv []byte) error { return t.ReduceScatter(recv, Even(len(send)), send, sum) },
	}
	for op := range operations {
		if calls[op] == nil {
			continue
		}
		for _, n := range []int{2, 4, 8} {
			for _, size := range []int{8, 1 << 10, 16 << 10, 256 << 10, 4 << 20} {
				for _, a := range usable[op] {
					if a == Levelled || op == Barrier && size > 8 || n*size > 16<<20 {
						continue
					}
					b.Run(fmt.Sprintf("%v/n=%d/%dB/%v", op, n, size, a), func(b *testing.B) {
						benchmarkForced(b, op, a, n, size, calls[op])
					})
				}
			}
		}
	}
}

// alltoallOf sends blocks of the length of send.
func alltoallOf(t *Team, send, recv []byte) error {
	s := borrow(len(recv))
	defer s.free()
	return t.Alltoall(recv, Even(len(send)), s.b, Even(len(send)))
}

// batch is the number of calls that are timed together. The benchmark reports the fastest batch,
// which shows the cost of a call when no other program uses the processors.
const batch = 4

func benchmarkForced(b *testing.B, op Operation, a Algorithm, n, size int, call func(t *Team, send, recv []byte) error) {
	fastest := time.Duration(math.MaxInt64)
	err := inTeam(n, func(t *Team) error {
		t.Forced = new(Forced)
		t.Forced[op] = a
		send, recv := make([]byte, size), make([]byte, n*size)
		for range (b.N + batch - 1) / batch {
			if err := t.Barrier(); err != nil {
				return err
			}
			start := time.Now()
			for range batch {
				if err := call(t, send, recv); err != nil {
					return err
				}
			}
			if err := t.Barrier(); err != nil {
				return err
			}
			if t.Rank == 0 {
				fastest = min(fastest, time.Since(start))
			}
		}
		return nil
	})
	if err != nil {
		b.Error(err)
	}
	b.ReportMetric(float64(fastest.Nanoseconds())/batch/1000, "µs-at-best")
}
