package submit

import (
	"maps"
	"slices"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
)

// An agreement is the view group of a kept job, without the process of the submitter that resumes
// the job. Every recorded peer is a member, even if its part of the job has ended.
type agreement struct {
	*bed
	k      *keeper
	groups map[p2ppeer.ID]*viewgroup.Group

	mu        sync.Mutex
	views     map[p2ppeer.ID]view.View
	newcomers map[view.Process]viewgroup.Newcomer
	changed   chan struct{} // closed and replaced whenever a view or newcomers change
}

func change(q view.Process, to view.State) view.Change { return view.Change{Process: q, To: to} }

// agrees makes the peers of a kept job members of its view group. The first process of the submitter
// requested the given changes, and was killed after they were agreed on.
func (b *bed) agrees(k *keeper, past ...view.Change) {
	b.Helper()
	a := &agreement{
		bed: b, k: k, groups: make(map[p2ppeer.ID]*viewgroup.Group), changed: make(chan struct{}),
		views: make(map[p2ppeer.ID]view.View), newcomers: make(map[view.Process]viewgroup.Newcomer),
	}
	b.agreement = a
	for _, known := range k.kept.Peers {
		if a.groups[known.Peer] == nil {
			a.groups[known.Peer] = a.join(b.peer(known.Peer.String()), known.Number)
		}
	}
	if len(past) == 0 {
		return
	}
	former := a.join(b.own, 0)
	for i, c := range past {
		if c.Joins() {
			former.Introduce(a.newcomer(c.Process))
		}
		former.Propose(c)
		for id := range a.groups {
			a.await("a change of the view", func() bool { return a.views[id].Epoch >= uint64(i+2) || a.unjoined(id, past[:i+1]) })
		}
	}
	former.Close()
}

// first returns the number of the first peers of the job, with the submitter's.
func (a *agreement) first() int {
	later := func(p KeptPeer) bool { return p.Processes[0].Replica >= a.k.kept.Request.R }
	return 1 + len(slices.DeleteFunc(slices.Clone(a.k.kept.Peers), later))
}

// unjoined reports whether a recorded peer came later and none of the changes lets its process join.
func (a *agreement) unjoined(id p2ppeer.ID, changes []view.Change) bool {
	for _, p := range a.k.kept.Peers {
		if p.Peer == id && (p.Number < a.first() || slices.ContainsFunc(changes, func(c view.Change) bool { return slices.Contains(p.Processes, c.Process) })) {
			return false
		}
	}
	return true
}

// join makes m a member with the given number.
func (a *agreement) join(m *member, number int) *viewgroup.Group {
	a.Helper()
	first, req := a.first(), a.k.kept.Request
	c := viewgroup.GroupConfig{
		Job: a.k.kept.Job, First: first, Members: viewgroup.Members(first), Self: number, View: view.New(req.N, req.R), RunsOn: make(map[view.Process]int),
		Peers: make([]p2ppeer.ID, max(first, number+1)), Contact: func(viewgroup.Contact) {},
		Committed: func(_ []viewgroup.Committed, v view.View) { a.note(func() { a.views[m.ID()] = v }) },
		Came:      func(n viewgroup.Newcomer) { a.note(func() { a.newcomers[n.Process] = n }) },
	}
	c.Peers[0] = a.own.ID()
	for _, p := range a.k.kept.Peers {
		if p.Number < len(c.Peers) {
			c.Peers[p.Number] = p.Peer
		}
		for _, q := range p.Processes {
			if q.Replica < req.R {
				c.RunsOn[q] = p.Number
			}
		}
		m.Peerstore().AddAddrs(p.Peer, readAddrs(p.Addrs), time.Hour)
	}
	m.Peerstore().AddAddrs(a.own.ID(), a.own.Addrs(), time.Hour)
	g, err := m.views.Join(c)
	if err != nil {
		a.Fatal(err)
	}
	a.Cleanup(g.Close)
	return g
}

// newcomer returns the signed introduction of the peer of q, which is the last one if q was not recorded.
func (a *agreement) newcomer(q view.Process) viewgroup.Newcomer {
	a.Helper()
	at := a.k.kept.Peers[len(a.k.kept.Peers)-1]
	for _, p := range a.k.kept.Peers {
		if slices.Contains(p.Processes, q) {
			at = p
		}
	}
	row, err := proto.Marshal(&jobpb.Member{Process: jobpb.FromProcess(q), Peer: []byte(at.Peer), Key: make([]byte, proclink.KeySize)})
	if err != nil {
		a.Fatal(err)
	}
	n := viewgroup.Newcomer{Peer: at.Number, ID: at.Peer, Process: q, Row: row}
	if err := n.Sign(a.own.key, a.k.kept.Job); err != nil {
		a.Fatal(err)
	}
	return n
}

// note records an event.
func (a *agreement) note(event func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	event()
	close(a.changed)
	a.changed = make(chan struct{})
}

// await waits until is holds.
func (a *agreement) await(what string, is func() bool) {
	a.Helper()
	for timeout := time.After(eventTimeout); ; {
		a.mu.Lock()
		ok, changed := is(), a.changed
		a.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			a.Errorf("%s: not agreed on", what)
			return
		}
	}
}

// leader waits until a peer leads the view group, and returns it.
func (a *agreement) leader() *member {
	a.Helper()
	for timeout := time.After(eventTimeout); ; {
		for _, m := range a.peers {
			if g := a.groups[m.ID()]; g != nil && g.Leads() {
				return m
			}
		}
		select {
		case <-time.After(viewgroup.TickPeriod):
		case <-timeout:
			a.Fatal("no peer leads the view group")
		}
	}
}

// agreed waits until the view group has agreed that q is in a state.
func (p *part) agreed(q view.Process, to view.State) {
	p.Helper()
	a := p.agreement
	a.await(change(q, to).String(), func() bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(a.views)), func(v view.View) bool { return v.State(q) == to })
	})
}
