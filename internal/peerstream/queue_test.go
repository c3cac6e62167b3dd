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
