package farm

import "testing"

// TestOtherOrderChangesTheOutput checks that another order changes the output, and that the output ends with the
// last task.
func TestOtherOrderChangesTheOutput(t *testing.T) {
	one, err := Output(3, 5, 2, []int{1, 2, 1, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(one) != 12 || one[0] != "rank 0 took [1 2]" || one[8] != "rank 0 took [2]" {
		t.Errorf("output %q", one)
	}
	other, err := Output(3, 5, 2, []int{2, 1, 1, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	for i := range one {
		if one[i] == other[i] && i != 4 && i != 8 { // at these two, both orders contain the same workers
			t.Errorf("line %d is the same: %s", i, one[i])
		}
	}
}

func TestImpossibleOrdersAreRefused(t *testing.T) {
	for name, took := range map[string][]int{
		"too few":                      {1, 2, 1, 1},
		"too many":                     {1, 2, 1, 1, 2, 1},
		"from rank 0":                  {1, 2, 0, 1, 2},
		"from an unknown rank":         {1, 2, 3, 1, 2},
		"from a worker without a task": {1, 2, 1, 2, 2, 2},
	} {
		if _, err := Output(3, 5, 2, took); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Output(3, 5, 2, []int{1, 1, 1, 1, 1}); err == nil {
		t.Error("a task that was never taken counts as done: no error")
	}
}

// A worker processes its messages in order, when the test tells it to.
type worker struct {
	state uint64
	sent  []uint64
}

// work makes w process a number of its messages, and returns its answer.
func (w *worker) work(messages int) uint64 {
	for _, m := range w.sent[:messages] {
		w.state = Mix(w.state, m)
	}
	w.sent = w.sent[messages:]
	return w.state
}

// TestAnswersDependOnEarlierMessages checks the answers of a worker that is also told the order while it has a
// task.
func TestAnswersDependOnEarlierMessages(t *testing.T) {
	b, w := New(2, 2), &worker{}
	task, _ := b.Give(1)
	order := b.Tell()
	w.sent = append(w.sent, task, order)
	if got := w.work(1); got != b.Want(1) {
		t.Fatalf("answer %x, want %x", got, b.Want(1))
	}
	if err := b.Take(1); err != nil {
		t.Fatal(err)
	}
	task, _ = b.Give(1)
	w.sent = append(w.sent, task)
	if got := w.work(2); got != b.Want(1) {
		t.Fatalf("answer %x after an order, want %x", got, b.Want(1))
	}
	if err := b.Take(1); err != nil || !b.Done() {
		t.Fatalf("after the last answer: %v", err)
	}
	if _, ok := b.Give(1); ok {
		t.Error("there is a third task")
	}
}
