package farm

import "testing"

// TestAnyOtherOrderIsAnotherOutput also expects that the lines end with the last task.
func TestAnyOtherOrderIsAnotherOutput(t *testing.T) {
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
		if one[i] == other[i] && i != 4 && i != 8 { // in these two, the same were taken
			t.Errorf("line %d is the same: %s", i, one[i])
		}
	}
}

func TestOrdersThatCannotBe(t *testing.T) {
	for name, took := range map[string][]int{
		"too few":          {1, 2, 1, 1},
		"too many":         {1, 2, 1, 1, 2, 1},
		"of rank 0":        {1, 2, 0, 1, 2},
		"of nobody":        {1, 2, 3, 1, 2},
		"of one with none": {1, 2, 1, 2, 2, 2},
	} {
		if _, err := Output(3, 5, 2, took); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Output(3, 5, 2, []int{1, 1, 1, 1, 1}); err == nil {
		t.Error("one was given a task that was never taken: no error")
	}
}

// TestATaskDoneTwiceIsSeen has a worker see a task twice: all that it answers after it is wrong.
func TestATaskDoneTwiceIsSeen(t *testing.T) {
	b := New(2, 3)
	state := uint64(0)
	for range 3 {
		task, ok := b.Give(1)
		if state = Mix(state, task); !ok || state != b.Want(1) {
			t.Fatalf("a worker answers %x, want %x", state, b.Want(1))
		}
		if err := b.Take(1); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := b.Give(1); ok || !b.Done() {
		t.Error("there is a fourth task")
	}
	first := New(2, 3)
	task, _ := first.Give(1)
	if Mix(Mix(0, task), task) == first.Want(1) {
		t.Error("a task done twice is answered like one that was done once")
	}
}
