// Package farm implements the bookkeeping of rank 0 in the program farm (e2e/programs/farm). A Book records each
// worker's task and expected answer. Everything follows from the order in which the answers arrive. Rank 0
// therefore knows the correct answers in advance. From that order alone, a test can compute the whole output
// without any worker.
//
//	Give w ──► a task, of the order so far     answer = hash of all that w has seen
//	Take w ◄── its answer                      order  = hash of all answers, and whose they are
//	Tell   ──► the order, to all
//
// A task that is done twice, not at all or wrongly affects all later answers of its worker, and therefore the
// order.
package farm

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// A Book is the record that rank 0 keeps.
type Book struct {
	tasks  int      // total number
	states []uint64 // states of the ranks, after all messages sent to them
	want   []uint64 // expected answer of each worker: its state when it has done its task
	busy   []bool   // the worker has a task
	order  uint64
	given  int
	taken  int
}

// New returns the book for a number of ranks, and a number of tasks for the ranks other than 0.
func New(ranks, tasks int) *Book {
	return &Book{tasks: tasks, states: make([]uint64, ranks), want: make([]uint64, ranks), busy: make([]bool, ranks)}
}

// Done reports whether all tasks have been done, or there are no workers.
func (b *Book) Done() bool { return b.taken == b.tasks || len(b.states) == 1 }

// Taken returns the number of answers taken.
func (b *Book) Taken() int { return b.taken }

// Busy reports whether worker w has a task.
func (b *Book) Busy(w int) bool { return b.busy[w] }

// Give returns the next task, for worker w. ok is false if all tasks have been given.
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

// Want returns the expected answer of worker w.
func (b *Book) Want(w int) uint64 { return b.want[w] }

// Take records that worker w has given its expected answer. It fails if w has no task.
func (b *Book) Take(w int) error {
	if w < 1 || w >= len(b.busy) || !b.busy[w] {
		return fmt.Errorf("answer %d is from rank %d, which has no task", b.taken, w)
	}
	b.busy[w] = false
	b.taken++
	b.order = Mix(Mix(b.order, uint64(w)), b.want[w])
	return nil
}

// Tell returns the order, and records that every worker is told it.
func (b *Book) Tell() (order uint64) {
	for w := 1; w < len(b.states); w++ {
		b.states[w] = Mix(b.states[w], b.order)
	}
	return b.order
}

// Mix returns the hash of two numbers, for example of a worker's state and a new input.
func Mix(a, b uint64) uint64 {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, a), b))
	return h.Sum64()
}

// Line is the line that a rank prints when it is told the order of a number of answers.
func Line(rank, taken int, order uint64) string {
	return fmt.Sprintf("rank %d tasks %d order %016x", rank, taken, order)
}

// TookLine is the line that rank 0 prints before that: the workers whose answers it has taken since
// the last such line.
func TookLine(workers []int) string { return "rank 0 took " + fmt.Sprint(workers) }

// Output returns the output of a job with the given numbers of ranks and tasks. The ranks are told
// the order after each group of every answers, and at the end. took is the sequence of workers
// whose answers are taken. Output fails if the sequence is impossible.
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
