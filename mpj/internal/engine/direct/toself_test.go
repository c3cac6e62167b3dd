package direct

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/match"
)

// TestMessagesToSelfAreCountedUntilTheyAreReceived checks the bytes that the limit on messages of a process to itself
// counts, after messages that posted receives have matched at once.
func TestMessagesToSelfAreCountedUntilTheyAreReceived(t *testing.T) {
	for name, r := range map[string]*engine.Request{
		"whole": {Whole: true}, "matched": {Hold: new(match.Message)}, "buffer": {Buf: make([]byte, 8)},
	} {
		d, b := new(transport), new(engine.Mailbox)
		r.Owner, r.Source, r.Tag = r, 0, 0
		b.Post(&r.Recv, true)
		if !d.sendToSelf(b, 1, 0, make([]byte, 8)) {
			t.Fatalf("%s: the posted receive does not match", name)
		}
		if r.Hold != nil {
			if d.selfBytes != 8 {
				t.Errorf("%s: %d bytes are counted for a message of 8 bytes that is not received yet", name, d.selfBytes)
			}
			d.give(&engine.Request{Buf: make([]byte, 8)}, *r.Hold)
		}
		if d.selfBytes != 0 {
			t.Errorf("%s: %d bytes are counted after all messages were received", name, d.selfBytes)
		}
	}
}
