package faultdetect

import "testing"

func TestWriterKeepsTheNewestOfATargetThatDoesNotRead(t *testing.T) {
	w := &writer{queue: make(chan Message, 2)} // nobody takes from the queue: the target is frozen
	for h := range uint64(100) {
		w.put(Message{Heartbeat: h}) // must not block
	}
	for _, want := range []uint64{98, 99} {
		if got := <-w.queue; got.Heartbeat != want {
			t.Errorf("heartbeat %d, want %d", got.Heartbeat, want)
		}
	}
}
