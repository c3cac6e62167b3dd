package mpj

import (
	"fmt"
	"math/rand/v2"
)

// A plan is a random legal program for some ranks: a list of steps in which every rank has a part.
// All ranks draw the same plan from the same seed, so each rank can compute its expected results.
type plan struct {
	ranks int
	steps []step
}

// A step has messages and nonblocking collectives in progress at the same time.
type step struct {
	messages    []planMessage
	wild        int  // wildcards of its receives
	posted      bool // all receives are posted before any message is sent
	collectives []collectiveCall
	renew       int // set of communicators that is recreated first, or -1
}

// A planMessage is a message of a plan.
type planMessage struct {
	comm     int // index of the set of communicators
	from, to int // world ranks
	tag      int
	size     int // in bytes
	way      int // index in ways
}

// A collectiveCall is one collective on every communicator of a set.
type collectiveCall struct {
	comm, kind, root, count int
	blocking                bool
}

// The wildcards of a step's receives.
const (
	named = iota
	anyTag
	anySource
	anyBoth
	wildcards
)

// layouts returns, for each set, the communicators of n ranks as lists of world ranks. The sets are
// the world, a duplicate, its halves, and all ranks in reverse order.
func layouts(n int) [][][]int {
	all := numbers(0, 1, n)
	halves := [][]int{numbers(0, 2, n)}
	if n > 1 {
		halves = append(halves, numbers(1, 2, n))
	}
	return [][][]int{{all}, {all}, halves, {reversed(all)}}
}

// makeSet creates communicator i of layouts from c.
func makeSet(c *Comm, i int) (*Comm, error) {
	switch i {
	case 0, 1:
		return c.Dup()
	case 2:
		return c.Split(c.Rank()%2, c.Rank())
	}
	return c.Split(0, -c.Rank())
}

// sizes contains message sizes around which the behaviour changes, and smaller sizes, which are
// drawn more often.
var sizes = []int{
	0, 1, 7, 80, 81, 500, 4095, 4096, 9000, 0, 1, 8, 64, 79, 82, 100, 1000, 3000,
	32 << 10, 64<<10 - 1, 64 << 10, 64<<10 + 1, 128 << 10, 1 << 20,
}

func drawPlan(seed uint64, ranks, steps int) plan {
	random := rand.New(rand.NewPCG(seed, 1))
	p := plan{ranks: ranks}
	for range steps {
		p.steps = append(p.steps, drawStep(random, layouts(ranks)))
	}
	return p
}

func drawStep(random *rand.Rand, sets [][][]int) step {
	s := step{wild: random.IntN(wildcards), posted: random.IntN(3) == 0, renew: -1}
	if random.IntN(5) == 0 {
		s.renew = 1 + random.IntN(len(sets)-1)
	}
	for range random.IntN(14) {
		set := random.IntN(len(sets))
		group := sets[set][random.IntN(len(sets[set]))]
		s.messages = append(s.messages, planMessage{
			comm: set, from: group[random.IntN(len(group))], to: group[random.IntN(len(group))],
			tag: random.IntN(3), size: sizes[random.IntN(len(sizes))], way: random.IntN(len(ways)),
		})
	}
	for range random.IntN(4) {
		set := random.IntN(len(sets))
		smallest := len(sets[set][len(sets[set])-1])
		s.collectives = append(s.collectives, collectiveCall{
			comm: set, kind: random.IntN(len(collectives)), root: random.IntN(smallest),
			count: sizes[random.IntN(len(sizes)-2)] / 8, blocking: random.IntN(2) == 0,
		})
	}
	return s
}

// content fills buf with the contents of the i-th planMessage of a step.
func content(buf []byte, step, i int) {
	x := uint64(step)<<32 | uint64(i)<<8 | 1
	for j := range buf {
		if j%8 == 0 {
			x = x*6364136223846793005 + 1442695040888963407
		}
		buf[j] = byte(x >> (8 * (j % 8)))
	}
}

// ways contains the functions that send a planMessage without waiting for the receiver.
var ways = []struct {
	name     string
	send     func(c *Comm, buf []byte, dest, tag int) (*Request, error)
	blocking func(c *Comm, buf []byte, dest, tag int) error // used if the receive is posted
}{
	{"Isend", Isend[byte], Send[byte]},
	{"Issend", Issend[byte], Ssend[byte]},
	{"Ibsend", Ibsend[byte], Bsend[byte]},
	{"SendInit", startedNow(SendInit[byte]), Rsend[byte]},
	{"SsendInit", startedNow(SsendInit[byte]), Ssend[byte]},
	{"BsendInit", startedNow(BsendInit[byte]), Send[byte]},
}

func startedNow(init func(c *Comm, buf []byte, dest, tag int) (*Request, error)) func(c *Comm, buf []byte, dest, tag int) (*Request, error) {
	return func(c *Comm, buf []byte, dest, tag int) (*Request, error) {
		r, err := init(c, buf, dest, tag)
		return r, first(err, Startall(r))
	}
}

// element returns element i of a rank's contribution.
func element(rank, i int) int64 { return int64(1000*rank + i%977) }

func values(n int, f func(i int) int64) []int64 {
	s := make([]int64, n)
	for i := range s {
		s[i] = f(i)
	}
	return s
}

// own returns the contribution of rank to a collective of n elements.
func own(rank, n int) []int64 { return values(n, func(i int) int64 { return element(rank, i) }) }

// sums returns the sum of the contributions of the first ranks.
func sums(ranks, n int) []int64 {
	return values(n, func(i int) (sum int64) {
		for r := range ranks {
			sum += element(r, i)
		}
		return sum
	})
}

// A result is the expected contents of recv after a collective.
type result struct{ recv, want []int64 }

// collectives contains functions that start a collective with count elements per rank, and return
// the expected result.
var collectives = []struct {
	name  string
	begin func(c *Comm, root, count int) (*Request, result, error)
	block func(c *Comm, root, count int) (result, error)
}{
	{"Allreduce", func(c *Comm, root, count int) (*Request, result, error) {
		x := result{make([]int64, count), sums(c.Size(), count)}
		r, err := Iallreduce(c, own(c.Rank(), count), x.recv, Sum)
		return r, x, err
	}, func(c *Comm, root, count int) (result, error) {
		x := result{make([]int64, count), sums(c.Size(), count)}
		return x, Allreduce(c, own(c.Rank(), count), x.recv, Sum)
	}},
	{"Bcast", func(c *Comm, root, count int) (*Request, result, error) {
		x := result{own(c.Rank(), count), own(root, count)}
		r, err := Ibcast(c, x.recv, root)
		return r, x, err
	}, func(c *Comm, root, count int) (result, error) {
		x := result{own(c.Rank(), count), own(root, count)}
		return x, Bcast(c, x.recv, root)
	}},
	{"Allgather", func(c *Comm, root, count int) (*Request, result, error) {
		x := result{make([]int64, c.Size()*count), owns(c.Size(), count)}
		r, err := Iallgather(c, own(c.Rank(), count), x.recv)
		return r, x, err
	}, func(c *Comm, root, count int) (result, error) {
		x := result{make([]int64, c.Size()*count), owns(c.Size(), count)}
		return x, Allgather(c, own(c.Rank(), count), x.recv)
	}},
	{"Alltoall", func(c *Comm, root, count int) (*Request, result, error) {
		x := result{make([]int64, c.Size()*count), owns(c.Size(), count)}
		r, err := Ialltoall(c, copies(c, count), x.recv)
		return r, x, err
	}, func(c *Comm, root, count int) (result, error) {
		x := result{make([]int64, c.Size()*count), owns(c.Size(), count)}
		return x, Alltoall(c, copies(c, count), x.recv)
	}},
	{"Reduce", func(c *Comm, root, count int) (*Request, result, error) {
		x := atRoot(c, root, sums(c.Size(), count))
		r, err := Ireduce(c, own(c.Rank(), count), x.recv, Sum, root)
		return r, x, err
	}, func(c *Comm, root, count int) (result, error) {
		x := atRoot(c, root, sums(c.Size(), count))
		return x, Reduce(c, own(c.Rank(), count), x.recv, Sum, root)
	}},
	{"Gather", func(c *Comm, root, count int) (*Request, result, error) {
		x := atRoot(c, root, owns(c.Size(), count))
		r, err := Igather(c, own(c.Rank(), count), x.recv, root)
		return r, x, err
	}, func(c *Comm, root, count int) (result, error) {
		x := atRoot(c, root, owns(c.Size(), count))
		return x, Gather(c, own(c.Rank(), count), x.recv, root)
	}},
	{"Scan", func(c *Comm, root, count int) (*Request, result, error) {
		x := result{make([]int64, count), sums(c.Rank()+1, count)}
		r, err := Iscan(c, own(c.Rank(), count), x.recv, Sum)
		return r, x, err
	}, func(c *Comm, root, count int) (result, error) {
		x := result{make([]int64, count), sums(c.Rank()+1, count)}
		return x, Scan(c, own(c.Rank(), count), x.recv, Sum)
	}},
	{"Barrier", func(c *Comm, root, count int) (*Request, result, error) {
		r, err := Ibarrier(c)
		return r, result{}, err
	}, func(c *Comm, root, count int) (result, error) { return result{}, Barrier(c) }},
}

// owns returns the contributions of all ranks, one after the other.
func owns(ranks, count int) []int64 {
	var all []int64
	for r := range ranks {
		all = append(all, own(r, count)...)
	}
	return all
}

// copies returns this rank's contribution, repeated once for each rank.
func copies(c *Comm, count int) []int64 {
	var all []int64
	for range c.Size() {
		all = append(all, own(c.Rank(), count)...)
	}
	return all
}

// atRoot returns a result that only root gets.
func atRoot(c *Comm, root int, at []int64) result {
	if c.Rank() != root {
		return result{}
	}
	return result{make([]int64, len(at)), at}
}

// check compares recv with want, and reports only the first difference, to keep the output short.
func (x result) check(name string) error {
	for i, v := range x.want {
		if x.recv[i] != v {
			return fmt.Errorf("%s: element %d of %d is %d, not %d", name, i, len(x.want), x.recv[i], v)
		}
	}
	return nil
}
