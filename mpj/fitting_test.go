package mpj

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
)

// These tests call every collective at several ranks with arguments that do not match, in all
// possible ways.

// An asked contains the arguments of one rank's call of a collective.
type asked struct {
	root, count   int
	prod, inPlace bool
}

// A subject is a collective to misuse. rooted, reduces and inPlace determine the misuses that apply.
type subject[T Number] struct {
	name                     string
	rooted, reduces, inPlace bool
	call                     func(c *Comm, a asked) error
}

// now waits for a started request.
func now(r *Request, err error) error {
	if err == nil {
		_, err = r.Wait()
	}
	return err
}

// lists returns n counts for vector collectives.
func lists(n, count int) []int { return slices.Repeat([]int{count}, n) }

func (a asked) ring(c *Comm) (*Comm, error) {
	return c.DistGraphCreateAdjacent([]int{(c.Rank() + c.Size() - 1) % c.Size()}, nil, []int{(c.Rank() + 1) % c.Size()}, nil, false)
}

func subjects[T Number](sum, prod Op[T]) []subject[T] {
	op := func(a asked) Op[T] {
		if a.prod {
			return prod
		}
		return sum
	}
	of := func(n int) []T { return make([]T, n) }
	part := func(a asked, n int) []T {
		if a.inPlace {
			return nil
		}
		return of(n)
	}
	return []subject[T]{
		{"Bcast", true, false, false, func(c *Comm, a asked) error { return Bcast(c, of(a.count), a.root) }},
		{"Ibcast", true, false, false, func(c *Comm, a asked) error { return now(Ibcast(c, of(a.count), a.root)) }},
		{"Gather", true, false, false, func(c *Comm, a asked) error { return Gather(c, of(a.count), of(c.Size()*a.count), a.root) }},
		{"Igather", true, false, false, func(c *Comm, a asked) error { return now(Igather(c, of(a.count), of(c.Size()*a.count), a.root)) }},
		{"Gatherv", true, false, false, func(c *Comm, a asked) error {
			return Gatherv(c, of(a.count), of(c.Size()*a.count), lists(c.Size(), a.count), nil, a.root)
		}},
		{"Igatherv", true, false, false, func(c *Comm, a asked) error {
			return now(Igatherv(c, of(a.count), of(c.Size()*a.count), lists(c.Size(), a.count), nil, a.root))
		}},
		{"Scatter", true, false, false, func(c *Comm, a asked) error { return Scatter(c, of(c.Size()*a.count), of(a.count), a.root) }},
		{"Iscatter", true, false, false, func(c *Comm, a asked) error {
			return now(Iscatter(c, of(c.Size()*a.count), of(a.count), a.root))
		}},
		{"Scatterv", true, false, false, func(c *Comm, a asked) error {
			return Scatterv(c, of(c.Size()*a.count), lists(c.Size(), a.count), nil, of(a.count), a.root)
		}},
		{"Iscatterv", true, false, false, func(c *Comm, a asked) error {
			return now(Iscatterv(c, of(c.Size()*a.count), lists(c.Size(), a.count), nil, of(a.count), a.root))
		}},
		{"Allgather", false, false, true, func(c *Comm, a asked) error { return Allgather(c, part(a, a.count), of(c.Size()*a.count)) }},
		{"Iallgather", false, false, true, func(c *Comm, a asked) error { return now(Iallgather(c, part(a, a.count), of(c.Size()*a.count))) }},
		{"Allgatherv", false, false, true, func(c *Comm, a asked) error {
			return Allgatherv(c, part(a, a.count), of(c.Size()*a.count), lists(c.Size(), a.count), nil)
		}},
		{"Iallgatherv", false, false, true, func(c *Comm, a asked) error {
			return now(Iallgatherv(c, part(a, a.count), of(c.Size()*a.count), lists(c.Size(), a.count), nil))
		}},
		{"Alltoall", false, false, true, func(c *Comm, a asked) error { return Alltoall(c, part(a, c.Size()*a.count), of(c.Size()*a.count)) }},
		{"Ialltoall", false, false, true, func(c *Comm, a asked) error {
			return now(Ialltoall(c, part(a, c.Size()*a.count), of(c.Size()*a.count)))
		}},
		{"Alltoallv", false, false, false, func(c *Comm, a asked) error {
			return Alltoallv(c, of(c.Size()*a.count), lists(c.Size(), a.count), nil, of(c.Size()*a.count), lists(c.Size(), a.count), nil)
		}},
		{"Ialltoallv", false, false, false, func(c *Comm, a asked) error {
			return now(Ialltoallv(c, of(c.Size()*a.count), lists(c.Size(), a.count), nil, of(c.Size()*a.count), lists(c.Size(), a.count), nil))
		}},
		{"Reduce", true, true, false, func(c *Comm, a asked) error { return Reduce(c, of(a.count), of(a.count), op(a), a.root) }},
		{"Ireduce", true, true, false, func(c *Comm, a asked) error { return now(Ireduce(c, of(a.count), of(a.count), op(a), a.root)) }},
		{"Allreduce", false, true, true, func(c *Comm, a asked) error { return Allreduce(c, part(a, a.count), of(a.count), op(a)) }},
		{"Iallreduce", false, true, true, func(c *Comm, a asked) error { return now(Iallreduce(c, part(a, a.count), of(a.count), op(a))) }},
		{"Scan", false, true, true, func(c *Comm, a asked) error { return Scan(c, part(a, a.count), of(a.count), op(a)) }},
		{"Iscan", false, true, true, func(c *Comm, a asked) error { return now(Iscan(c, part(a, a.count), of(a.count), op(a))) }},
		{"Exscan", false, true, true, func(c *Comm, a asked) error { return Exscan(c, part(a, a.count), of(a.count), op(a)) }},
		{"Iexscan", false, true, true, func(c *Comm, a asked) error { return now(Iexscan(c, part(a, a.count), of(a.count), op(a))) }},
		{"ReduceScatterBlock", false, true, false, func(c *Comm, a asked) error {
			return ReduceScatterBlock(c, of(c.Size()*a.count), of(a.count), op(a))
		}},
		{"IreduceScatterBlock", false, true, false, func(c *Comm, a asked) error {
			return now(IreduceScatterBlock(c, of(c.Size()*a.count), of(a.count), op(a)))
		}},
		{"ReduceScatter", false, true, false, func(c *Comm, a asked) error {
			return ReduceScatter(c, of(c.Size()*a.count), of(a.count), lists(c.Size(), a.count), op(a))
		}},
		{"IreduceScatter", false, true, false, func(c *Comm, a asked) error {
			return now(IreduceScatter(c, of(c.Size()*a.count), of(a.count), lists(c.Size(), a.count), op(a)))
		}},
		{"NeighborAllgather", false, false, false, func(c *Comm, a asked) error {
			g, err := a.ring(c)
			return first(err, NeighborAllgather(g, of(a.count), of(a.count)))
		}},
		{"IneighborAlltoall", false, false, false, func(c *Comm, a asked) error {
			g, err := a.ring(c)
			if err != nil {
				return err
			}
			return now(IneighborAlltoall(g, of(a.count), of(a.count)))
		}},
		{"NeighborAlltoallv", false, false, false, func(c *Comm, a asked) error {
			g, err := a.ring(c)
			return first(err, NeighborAlltoallv(g, of(a.count), []int{a.count}, nil, of(a.count), []int{a.count}, nil))
		}},
	}
}

// A wrong is a misuse by the last rank. seen reports whether a message reveals the misuse with any
// algorithm, so that it is an error even without checks. Message lengths do not reveal the other
// misuses.
type wrong struct {
	name  string
	class Class
	seen  bool
	fits  func(s subject[int64]) bool
	do    func(s subject[int64], other subject[float64], c *Comm, a asked) error
}

func any64(subject[int64]) bool { return true }

var wrongs = []wrong{
	{"count", ErrCount, true, any64, func(s subject[int64], _ subject[float64], c *Comm, a asked) error {
		a.count++
		return s.call(c, a)
	}},
	{"root", ErrRoot, false, func(s subject[int64]) bool { return s.rooted }, func(s subject[int64], _ subject[float64], c *Comm, a asked) error {
		a.root = c.Rank()
		return s.call(c, a)
	}},
	{"element type", ErrType, false, any64, func(_ subject[int64], other subject[float64], c *Comm, a asked) error { return other.call(c, a) }},
	{"operation", ErrOp, false, func(s subject[int64]) bool { return s.reduces }, func(s subject[int64], _ subject[float64], c *Comm, a asked) error {
		a.prod = true
		return s.call(c, a)
	}},
	{"use in place", ErrBuffer, false, func(s subject[int64]) bool { return s.inPlace }, func(s subject[int64], _ subject[float64], c *Comm, a asked) error {
		a.inPlace = true
		return s.call(c, a)
	}},
	{"a different collective", ErrComm, false, any64, func(_ subject[int64], _ subject[float64], c *Comm, _ asked) error { return Barrier(c) }},
	{"a root that does not exist", ErrRoot, false, func(s subject[int64]) bool { return s.rooted }, func(s subject[int64], _ subject[float64], c *Comm, a asked) error {
		a.root = c.Size()
		return s.call(c, a)
	}},
}

// TestCheckFindsEveryMisuse checks that with checks, all ranks get an error for every misuse, with
// both calls. After a misuse of blocking calls, the world is still usable.
func TestCheckFindsEveryMisuse(t *testing.T) {
	skip.Long(t)
	t.Setenv(checkVariable, "1")
	all, others := subjects[int64](Sum, Prod), subjects[float64](Sum, Prod)
	for n := 2; n <= 5; n++ {
		inOneWorld(t, n, func(w *World) {
			for i, s := range all {
				if isImmediate(s.name) {
					continue
				}
				for _, m := range wrongs {
					m.expect(t, w.Comm, s, others[i])
					if err := s.call(w.Comm, asked{count: 3}); err != nil {
						t.Errorf("%s after %s, rank %d of %d: %v", s.name, m.name, w.Rank(), n, err)
					}
				}
			}
		})
	}
	for i, s := range all {
		for k, m := range wrongs {
			if isImmediate(s.name) {
				inOneWorld(t, 2+(i+k)%4, func(w *World) { m.expect(t, w.Comm, s, others[i]) })
			}
		}
	}
}

func inOneWorld(t *testing.T, n int, program func(*World)) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := RunLocal(ctx, n, func(w *World) error {
		program(w)
		return nil
	})
	if err != nil {
		t.Errorf("n=%d: %v", n, err)
	}
}

// expect calls s with misuse m, if m applies to s, and checks the error at this rank.
func (m wrong) expect(t *testing.T, c *Comm, s subject[int64], other subject[float64]) {
	if !m.fits(s) {
		return
	}
	n := c.Size()
	err := m.try(c, s, other)
	if again := told(err, m, n); again != nil && !(c.Rank() == n-1 && errors.Is(err, m.class)) {
		t.Errorf("%s, %s, rank %d of %d: %v", s.name, m.name, c.Rank(), n, again)
	}
}

// try calls s, with the misuse at the last rank.
func (m wrong) try(c *Comm, s subject[int64], other subject[float64]) error {
	a := asked{count: 3}
	if c.Rank() == c.Size()-1 {
		return m.do(s, other, c, a)
	}
	return s.call(c, a)
}

// told returns an error unless err has the class of m and names the last rank and its call.
func told(err error, m wrong, n int) error {
	if !errors.Is(err, m.class) {
		return fmt.Errorf("want an error of class %q, got %w", m.class.Error(), err)
	}
	for _, says := range []string{"mpj.", " at rank ", fmt.Sprintf("rank %d calls ", n-1), "fitting_test.go:"} {
		if !strings.Contains(err.Error(), says) {
			return fmt.Errorf("the error does not contain %q: %w", says, err)
		}
	}
	return nil
}

// TestMessagesRevealMisuse checks that, without checks and with every algorithm, a misuse that a
// message reveals is an error at a rank, and that the error names both ranks.
func TestMessagesRevealMisuse(t *testing.T) {
	all, others := subjects[int64](Sum, Prod), subjects[float64](Sum, Prod)
	for _, forced := range forcedInTurn() {
		t.Setenv(collectiveVariable, forced)
		for i, s := range all {
			for _, m := range wrongs {
				if !m.seen || !m.fits(s) {
					continue
				}
				for n := 2; n <= 5; n++ {
					ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
					err := RunLocal(ctx, n, func(w *World) error { return m.try(w.Comm, s, others[i]) })
					cancel()
					if err == nil || !strings.Contains(err.Error(), " at rank ") || !showsLengths(err) {
						t.Errorf("%s, %s, n=%d, %s: got %v", s.name, m.name, n, forced, err)
					}
				}
			}
		}
	}
}

// forcedInTurn returns settings that together use every algorithm.
func forcedInTurn() []string {
	all := []string{""}
	for k := 0; ; k++ {
		var parts []string
		for op := collective.Barrier; op <= collective.Scan; op++ {
			if a := collective.Algorithms(op); k < len(a) {
				parts = append(parts, fmt.Sprintf("%v=%v", op, a[k]))
			}
		}
		if parts == nil {
			return all
		}
		all = append(all, strings.Join(parts, ","))
	}
}

func showsLengths(err error) bool {
	return strings.Contains(err.Error(), "bytes where rank") || strings.Contains(err.Error(), "bytes from rank")
}

// TestPiecesRevealLengths checks that a different number of pieces in a chain is also detected.
func TestPiecesRevealLengths(t *testing.T) {
	t.Setenv(collectiveVariable, "bcast=chain")
	const piece = 128 << 10
	for _, lengths := range [][2]int{{piece, 2 * piece}, {2 * piece, piece}, {0, piece}, {piece, 0}, {piece - 8, piece}} {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := RunLocal(ctx, 2, func(w *World) error { return Bcast(w.Comm, make([]byte, lengths[w.Rank()]), 0) })
		cancel()
		if err == nil || !showsLengths(err) {
			t.Errorf("%v bytes: got %v", lengths, err)
		}
	}
}

// isImmediate reports whether the function op is nonblocking.
func isImmediate(op string) bool { return strings.HasPrefix(op, "I") && op != "IntercommCreate" }
