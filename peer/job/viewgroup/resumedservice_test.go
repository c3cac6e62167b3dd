package viewgroup

import (
	"testing"
	"time"
)

// TestO4PeersAreAddedWhileMessagesAreRefused introduces many processes of the submitter on streams while
// the messages of another peer are refused. Both look up peers of the group.
func TestO4PeersAreAddedWhileMessagesAreRefused(t *testing.T) {
	inGroup(t, 3, func(g *testGroup) {
		for i := range 3 {
			g.join(i)
		}
		time.Sleep(time.Second)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for number := range 200 {
				own := Newcomer{Peer: g.first + number, ID: g.ids[0], Process: NoProcess}
				if err := own.Sign(g.keys[0], "a job"); err != nil {
					t.Error(err)
				}
				g.groups[1].meetSubmitter(own.Peer, own.Signature)
			}
		}()
		for {
			select {
			case <-done:
				return
			case g.groups[1].inbox <- received{2, &Message{From: 2, To: 2}}: // to another peer
			}
		}
	})
}
