// Package farm is what rank 0 of the program of that name (e2e/programs/farm) keeps of its
// workers: what each has to do, and what it will answer. All of it follows from the order in
// which the answers arrive. So rank 0 knows what each answer must be; and whoever has heard
// that order knows the whole output without any worker.
//
//	Give w ──► a task, of the order so far     answer = hash of all that w has seen
//	Take w ◄── its answer                      order  = hash of all answers, and whose they are
//	Tell   ──► the order, to all
//
// A task that is done twice, not at all or wrongly is in all answers of its worker that follow,
// and so in the order.
package farm

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// A Book is kept by rank 0.
type Book struct {
	tasks  int      // in all
	states []uint64 // of the ranks, when they have done all that they were sent
	want   []uint64 // what each answers, or will: its state when it has done its task
	busy   []bool   // they have a task
	order  uint64
	given  int
	taken  int
}

// New returns the book of so many ranks, and so many tasks for those but rank 0.
func New(ranks, tasks int) *Book {
	return &Book{tasks: tasks, states: make([]uint64, ranks), want: make([]uint64, ranks), busy: make([]bool, ranks)}
}

// Done reports whether all tasks have been done, or nobody is there to do them.
func (b *Book) Done() bool { return b.taken == b.tasks || len(b.states) == 1 }

// Taken is how many answers have been taken.
func (b *Book) Taken() int { return b.taken }

// Busy reports whether worker w has a task.
func (b *Book) Busy(w int) bool { return b.busy[w] }

// Give returns the next task, for worker w. ok is false when all have been given.
func (b *Book) Give(w int) (task uint64, ok bool) {
	if b.given == b.tasks {
		return 0, false
	}
	b.given++
	task = Mix(b.order, uint64(b.given))
	b.states[w] = Mix(b.states[w], task)
	b.want[w], b.busy[w] = b.states[w], true
	return task, true
}

// Want returns what worker w answers, or will.
func (b *Book) Want(w int) uint64 { return b.want[w] }

// Take takes down that worker w has answered what it had to. It fails if w has no task.
func (b *Book) Take(w int) error {
	if w < 1 || w >= len(b.busy) || !b.busy[w] {
		return fmt.Errorf("answer %d is of rank %d, which has no task", b.taken, w)
	}
	b.busy[w] = false
	b.taken++
	b.order = Mix(Mix(b.order, uint64(w)), b.want[w])
	return nil
}

// Tell returns the order, which every worker is told now.
func (b *Book) Tell() (order uint64) {
	for w := 1; w < len(b.states); w++ {
		b.states[w] = Mix(b.states[w], b.order)
	}
	return b.order
}

// Mix is the hash of two numbers, for instance of what a worker has seen and what it sees now.
func Mix(a, b uint64) uint64 {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, a), b))
	return h.Sum64()
}

// Line is what a rank prints when it is told the order of so many answers.
func Line(rank, taken int, order uint64) string {
	return fmt.Sprintf("rank %d tasks %d order %016x", rank, taken, order)
}

// TookLine is what rank 0 prints before that: the workers whose answers it has taken since
// it printed the last.
func TookLine(workers []int) string { return "rank 0 took " + fmt.Sprint(workers) }

// Output is what so many ranks print that do so many tasks and are told the order after
// every so many, when the answers are taken of these workers in turn. It fails where that
// cannot be.
func Output(ranks, tasks, every int, took []int) ([]string, error) {
	if len(took) != tasks {
		return nil, fmt.Errorf("%d answers were taken, want %d", len(took), tasks)
	}
	var lines []string
	b := New(ranks, tasks)
	tell := func(since int) {
		lines = append(lines, TookLine(took[since:b.taken]))
		order := b.Tell()
		for rank := range ranks {
			lines = append(lines, Line(rank, b.taken, order))
		}
	}
	for w := 1; w < ranks; w++ {
		b.Give(w)
	}
	told := 0
	for _, w := range took {
		if err := b.Take(w); err != nil {
			return nil, err
		}
		if b.taken%every == 0 && b.taken < tasks {
			tell(told)
			told = b.taken
		}
		b.Give(w)
	}
	tell(told)
	return lines, nil
}
