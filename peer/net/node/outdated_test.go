package node

import (
	"fmt"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

func TestOutdatedPeersExpire(t *testing.T) {
	var o outdated
	now := time.Now()
	o.note("a", now)
	o.note("b", now.Add(outdatedFor))
	if got := o.list(now.Add(outdatedFor)); len(got) != 2 {
		t.Errorf("got %v, want both", got)
	}
	if got := o.list(now.Add(outdatedFor + 1)); len(got) != 1 || got[0] != "b" {
		t.Errorf("got %v, want only b", got)
	}
	for i := range 2 * maxOutdated {
		o.note(p2ppeer.ID(fmt.Sprint(i)), now)
	}
	if got := o.list(now); len(got) != maxOutdated {
		t.Errorf("%d peers are recorded, want %d", len(got), maxOutdated)
	}
}
