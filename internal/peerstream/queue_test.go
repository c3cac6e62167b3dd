package peerstream

import "testing"

// A numbered message supersedes older ones with the same subject.
type numbered struct {
	subject string
	number  int
}

func sameSubject(m, older numbered) bool { return m.subject == older.subject }

func TestQueueKeepsNewestOfEachSubject(t *testing.T) {
	w := NewWriter(Config[numbered]{Supersedes: sameSubject}) // Run is not called: the peer does not read
	for i := range 100 {
		w.Put(numbered{"table", i}) // must not block
		w.Put(numbered{"accusation of " + string(rune('0'+i%2)), i})
		w.Put(numbered{"answer", i})
	}
	for _, want := range []numbered{{"table", 99}, {"accusation of 0", 98}, {"answer", 99}, {"accusation of 1", 99}} {
		if got, ok := w.queue.take(t.Context()); !ok || got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestQueueIsBounded(t *testing.T) {
	w := NewWriter(Config[int]{MaxQueued: 3})
	for i := range 10 {
		w.Put(i) // must not block
	}
	for want := range 3 {
		if got, ok := w.queue.take(t.Context()); !ok || got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	if left := len(w.queue.messages); left > 0 {
		t.Errorf("%d messages above the limit were queued", left)
	}
}

// TestO4QueuedBytesAreBounded checks that a peer that does not read, and provokes long answers, does not fill this one.
func TestO4QueuedBytesAreBounded(t *testing.T) {
	length := func(m string) int { return len(m) }
	last := func(m, older string) bool { return m[0] == older[0] }
	for name, supersedes := range map[string]func(m, older string) bool{"all": nil, "the last of each kind": last} {
		w := NewWriter(Config[string]{MaxBytes: 10, Size: length, Supersedes: supersedes})
		for range 2 {
			for _, m := range []string{"aaaa", "bbbbbb", "c"} {
				w.Put(m)
			}
			for _, want := range []string{"aaaa", "bbbbbb"} {
				if got, ok := w.queue.take(t.Context()); !ok || got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
			if left := len(w.queue.messages); left > 0 || w.queue.bytes != 0 {
				t.Errorf("%s: %d messages above the limit were queued, of %d bytes", name, left, w.queue.bytes)
			}
		}
		w.Put("dddddddd")
		w.Put("d")
		w.Put("eeeeeeeee")
		if want := map[bool]int{true: 9, false: 10}[supersedes == nil]; w.queue.bytes != want {
			t.Errorf("%s: %d bytes are queued, want %d", name, w.queue.bytes, want)
		}
	}
}
