package mpj

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// words returns a text of rank, which is longer than a short message for long texts.
func words(rank int, long bool) string {
	if long {
		return strings.Repeat(fmt.Sprintf("%d ", rank), 50000+rank)
	}
	return fmt.Sprintf("%d ", rank)
}

// joined returns the texts of ranks from..to-1.
func joinedWords(from, to int, long bool) string {
	var s string
	for rank := from; rank < to; rank++ {
		s += words(rank, long)
	}
	return s
}

func appendWords(a, b string) string { return a + b }

// TestValueReductionsMatchTheDefinition checks the reductions of values with an operation that does
// not commute, and values of different lengths.
func TestValueReductionsMatchTheDefinition(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		n, rank := w.Size(), w.Rank()
		for root := range n {
			long := root%2 == 1
			reduced, err1 := ReduceValue(w.Comm, words(rank, long), appendWords, root)
			everywhere, err2 := AllreduceValue(w.Comm, words(rank, long), appendWords)
			prefix, err3 := ScanValue(w.Comm, words(rank, long), appendWords)
			before, err4 := ExscanValue(w.Comm, words(rank, long), appendWords)
			wantReduced := ""
			if rank == root {
				wantReduced = joinedWords(0, n, long)
			}
			err := first(err1, err2, err3, err4)
			if err == nil && (reduced != wantReduced || everywhere != joinedWords(0, n, long) ||
				prefix != joinedWords(0, rank+1, long) || before != joinedWords(0, rank, long)) {
				err = fmt.Errorf("wrong results with root %d", root)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// TestOperationsMayChangeTheirArguments checks reductions of maps whose operation adds to its
// arguments.
func TestOperationsMayChangeTheirArguments(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		merge := func(a, b map[int]int) map[int]int {
			maps.Copy(a, b)
			maps.Copy(b, a)
			return a
		}
		upTo := func(n int) map[int]int {
			m := make(map[int]int)
			for i := range n {
				m[i] = i * i
			}
			return m
		}
		mine := func() map[int]int { return map[int]int{w.Rank(): w.Rank() * w.Rank()} }
		all, err1 := AllreduceValue(w.Comm, mine(), merge)
		prefix, err2 := ScanValue(w.Comm, mine(), merge)
		before, err3 := ExscanValue(w.Comm, mine(), merge)
		err := first(err1, err2, err3)
		if err == nil && !(maps.Equal(all, upTo(w.Size())) && maps.Equal(prefix, upTo(w.Rank()+1)) && maps.Equal(before, upTo(w.Rank()))) {
			err = fmt.Errorf("got %v, %v and %v", all, prefix, before)
		}
		return err
	})
}

// TestWrongValueReductionsAreRefused checks that wrong arguments are errors, and that a value that
// cannot be encoded at one rank is an error at the ranks that wait for it.
func TestWrongValueReductionsAreRefused(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		_, root := ReduceValue(w.Comm, 1, lesser, w.Size())
		_, none := AllreduceValue[int](w.Comm, 1, nil)
		if !errors.Is(root, ErrRoot) || !errors.Is(none, ErrOp) {
			return fmt.Errorf("got %w for the root and %w for no operation", root, none)
		}
		if w.Size() == 1 {
			return nil
		}
		d, err := w.Dup()
		if err != nil {
			return err
		}
		var v any = 1
		if w.Rank() == w.Size()-1 {
			v = func() {}
		}
		if _, err = AllreduceValue(d, v, func(a, b any) any { return a }); err == nil {
			return errors.New("a function was sent")
		}
		return nil
	})
}
