package engine

import "testing"

func TestForgottenContextCanBeUsedAgain(t *testing.T) {
	e := &Engine{mailboxes: make(map[uint32]*Mailbox)}
	e.mailbox(1)
	e.Forget(1)
	again := e.mailbox(1)
	e.mailbox(2)
	if e.mailbox(1) != again {
		t.Error("the mailbox of context 1 was replaced, and its messages are lost")
	}
}

// TestLateMessageOfAForgottenContextIsUnmatched checks that a message of a freed communicator that arrives late is
// reported when the program ends.
func TestLateMessageOfAForgottenContextIsUnmatched(t *testing.T) {
	e := &Engine{mailboxes: make(map[uint32]*Mailbox)}
	e.mailbox(1) // the mailbox used last
	e.Forget(1)
	e.mailbox(1).Keep(message{Context: 1, Source: 3, Tag: 5})
	got := e.Unmatched()
	if len(got) != 1 || got[0] != (Unmatched{Context: 1, Status: Status{Source: 3, Tag: 5}}) {
		t.Errorf("unmatched messages: %v, want the late message", got)
	}
}
