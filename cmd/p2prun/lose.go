package main

import (
	"sync"

	"github.com/p2pmpi/p2pmpi/cmd/internal/display"
	"github.com/p2pmpi/p2pmpi/cmd/internal/localnet"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// A masterKiller kills a peer for --lose: the peer that runs the master of rank 0 at that time. Its loss affects
// the job most.
type masterKiller struct {
	mu     sync.Mutex
	view   view.View
	placed map[view.Process]string // peer IDs
}

// update updates, from an event, where the job's processes run.
func (k *masterKiller) update(e submit.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range e.Placed {
		k.placed[p.Process] = p.Peer
	}
	if e.View != nil {
		k.view = *e.View
	}
}

// kill kills that peer, and tells the user which one it is.
func (k *masterKiller) kill(net *localnet.Net, show *display.Display) {
	k.mu.Lock()
	master, ok := k.view.Master(0)
	id := k.placed[master]
	k.mu.Unlock()
	if !ok || id == "" {
		show.Say("no peer was killed: rank 0 has already ended")
		return
	}
	show.Say("killing peer %s, which runs the master of rank 0 (replica %d)", submit.ShortPeer(id), master.Replica)
	if err := net.Kill(id); err != nil {
		show.Say("no peer was killed: %v", err)
	}
}
