package faultdetect

import "testing"

func TestOutQueueKeepsTheNewestOfEachSort(t *testing.T) {
	q := newOutQueue() // never read: the target is frozen
	for h := range uint64(100) {
		q.put(Message{Kind: Table, Heartbeat: h}) // must not block
		q.put(Message{Kind: Accuse, About: int(h % 2), Tree: Backward, Heartbeat: h})
		q.put(Message{Kind: Pong, Heartbeat: h})
	}
	for _, want := range []Message{
		{Kind: Table, Heartbeat: 99},
		{Kind: Accuse, About: 0, Tree: Backward, Heartbeat: 98},
		{Kind: Pong, Heartbeat: 99},
		{Kind: Accuse, About: 1, Tree: Backward, Heartbeat: 99},
	} {
		if got, ok := q.take(t.Context()); !ok || got.Kind != want.Kind || got.Heartbeat != want.Heartbeat || got.About != want.About {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}
