package engine

import "testing"

func TestForgottenContextCanBeUsedAgain(t *testing.T) {
	e := &Engine{mailboxes: make(map[uint32]*mailbox)}
	e.mailbox(1)
	e.Forget(1)
	again := e.mailbox(1)
	e.mailbox(2)
	if e.mailbox(1) != again {
		t.Error("the mailbox of context 1 was replaced, and its messages are lost")
	}
}
