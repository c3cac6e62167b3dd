package engine

import "testing"

// TestMessagesToSelfAreCountedUntilTheyAreReceived checks the bytes that the limit on messages of a process to itself
// counts, after messages that posted receives have matched at once.
func TestMessagesToSelfAreCountedUntilTheyAreReceived(t *testing.T) {
	for name, r := range map[string]*Request{
		"whole": {whole: true}, "matched": {hold: new(message)}, "buffer": {buf: make([]byte, 8)},
	} {
		e := &Engine{mailboxes: make(map[uint32]*mailbox)}
		e.direct.e = e
		b := e.mailbox(1)
		r.Owner, r.Source, r.Tag = r, 0, 0
		b.Post(&r.Recv, true)
		if !e.direct.sendToSelf(b, 1, 0, make([]byte, 8)) {
			t.Fatalf("%s: the posted receive does not match", name)
		}
		if r.hold != nil {
			if got := e.direct.selfBytes; got != 8 {
				t.Errorf("%s: %d bytes are counted for a message of 8 bytes that is not received yet", name, got)
			}
			e.direct.give(&Request{buf: make([]byte, 8)}, *r.hold)
		}
		if got := e.direct.selfBytes; got != 0 {
			t.Errorf("%s: %d bytes are counted after all messages were received", name, got)
		}
	}
}
