package main

import (
	"sync"

	"github.com/p2pmpi/p2pmpi/cmd/internal/display"
	"github.com/p2pmpi/p2pmpi/cmd/internal/localnet"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// A victim is the peer that --lose kills: the one that then runs the master of rank 0, whose loss affects
// the job most.
type victim struct {
	mu     sync.Mutex
	view   view.View
	placed map[view.Process]string // peer IDs
}

func newVictim(n, r int) *victim {
	return &victim{view: view.New(n, r), placed: make(map[view.Process]string)}
}

// take updates from an event where the job's processes run.
func (v *victim) take(e submit.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range e.Placed {
		v.placed[p.Process] = p.Peer
	}
	if e.View != nil {
		v.view = *e.View
	}
}

// kill kills the peer and reports it.
func (v *victim) kill(net *localnet.Net, show *display.Display) {
	v.mu.Lock()
	master, ok := v.view.Master(0)
	id := v.placed[master]
	v.mu.Unlock()
	if !ok || id == "" {
		show.Say("nothing was lost: rank 0 had ended already")
		return
	}
	show.Say("killing peer %s, which runs the master of rank 0 (replica %d)", submit.ShortPeer(id), master.Replica)
	if err := net.Kill(id); err != nil {
		show.Say("nothing was lost: %v", err)
	}
}
