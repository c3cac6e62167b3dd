package viewgroup

import (
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// write adds an entry to the log without checking its effect, like a malicious leader.
func (w *world) write(i int, p Proposal) {
	w.Helper()
	m := w.members[i]
	m.attempt(func() error { return m.node.Propose(p.encode()) })
	w.carry(i, m.ready())
}

// TestV4LiarFailsOnlyItself checks that a malicious peer's log entries, even those of a leader,
// do not change other peers' processes, and that all peers continue with equal views.
func TestV4LiarFailsOnlyItself(t *testing.T) {
	const liar = 2 // hosts rank 1
	other, own := view.Process{Rank: 2}, view.Process{Rank: liar - 1}
	forged := signed(liar, view.Change{Process: other, To: view.Failed})
	forged.Author = submitterPeer
	cases := map[string]struct {
		lie     Proposal
		changes view.Process // process that the entry is about
		want    view.State
	}{
		"accuses another peer":              {signed(liar, view.Change{Process: other, To: view.Failed}), other, view.Live},
		"has another's process finish":      {signed(liar, view.Change{Process: other, To: view.Finished}), other, view.Live},
		"proposes for the submitter":        {forged, other, view.Live},
		"proposes for an unknown peer":      {signed(77, view.Change{Process: other, To: view.Failed}), other, view.Live},
		"has a process of its own join":     {signed(liar, view.Change{Process: view.Process{Rank: 1, Replica: 1}}), view.Process{Rank: 1, Replica: 1}, view.Vacant},
		"makes another peer's process join": {signed(liar, view.Change{Process: view.Process{Rank: 0, Replica: 1}}), view.Process{Rank: 0, Replica: 1}, view.Vacant},
		"names a rank that there is not":    {signed(liar, view.Change{Process: view.Process{Rank: 50}, To: view.Failed}), other, view.Live},
		"fails itself":                      {signed(liar, view.Change{Process: own, To: view.Failed}), own, view.Failed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, leads := range []int{submitterPeer, liar} {
				w := newWorld(t, 1, 5)
				w.liar = liar
				w.ticks(3)
				if leads == liar {
					w.members[submitterPeer].node.TransferLeader(liar + 1)
					w.carry(submitterPeer, w.members[submitterPeer].ready())
					w.until("the liar leads", func() bool { return w.members[liar].Leads() })
				}
				if leads == liar {
					w.write(liar, c.lie)
				} else {
					w.carry(liar, w.members[liar].Propose(c.lie))
				}
				w.ticks(5)
				w.propose(submitterPeer, 0, view.Failed) // the job continues
				w.until("rank 0 has failed everywhere", w.failed(0, 0, 1, 2, 3, 4))
				for i, m := range w.members {
					if got := m.View().State(c.changes); got != c.want || m.broken != nil {
						t.Errorf("leader %d: peer %d has %v as %v, want %v (%v)", leads, i, c.changes, got, c.want, m.broken)
					}
				}
			}
		})
	}
}

// TestV4MajorityOfJurorsFailsAPeer checks that a majority of the jurors fails a peer while the
// submitter does not vote, and that the change names them. One juror alone has no effect.
func TestV4MajorityOfJurorsFailsAPeer(t *testing.T) {
	w := newWorld(t, 2, 5)
	w.ticks(3)
	lost := view.Change{Process: view.Process{Rank: 3}, To: view.Failed} // on peer 4
	accuse := func(i int) { w.carry(i, w.members[i].Propose(signed(i, lost))) }
	w.crash(4)
	accuse(1)
	accuse(2)
	w.ticks(10)
	if w.failed(3, 0)() {
		t.Fatal("two of four have failed it: of peers 1 to 3 and the submitter's")
	}
	accuse(2) // repeated
	w.ticks(10)
	if w.failed(3, 0)() {
		t.Fatal("one counts twice")
	}
	accuse(3)
	w.until("it has failed", w.failed(3, 0, 1, 2, 3))
}

// TestV4FailedJurorsDoNotCount loses two peers at once. The remaining jurors of each fail both.
func TestV4FailedJurorsDoNotCount(t *testing.T) {
	w := newWorld(t, 3, 7)
	w.ticks(3)
	w.crash(5)
	w.crash(6)
	for i := 1; i <= 4; i++ {
		for _, rank := range []int{4, 5} {
			w.carry(i, w.members[i].Propose(signed(i, view.Change{Process: view.Process{Rank: rank}, To: view.Failed})))
		}
	}
	w.until("both have failed", func() bool { return w.failed(4, 0, 1, 2, 3, 4)() && w.failed(5, 0, 1, 2, 3, 4)() })
}

// TestV4UnsignedNewcomersAreRejected checks that no member accepts a newcomer that a malicious leader adds
// without the submitter's signature.
func TestV4UnsignedNewcomersAreRejected(t *testing.T) {
	w := newWorld(t, 4, 4)
	w.ticks(3)
	m := w.members[0]
	n := Newcomer{Peer: 4, ID: p2ppeer.ID("stranger"), Process: view.Process{Replica: 1}, Signature: []byte("made up")}
	w.members = append(w.members, nil) // place of the newcomer
	w.views, w.side = append(w.views, view.View{}), append(w.side, 0)
	m.attempt(func() error { return m.node.ProposeConfChange(m.introduction(n)) })
	w.carry(0, m.ready())
	w.ticks(5)
	for i := range 4 {
		if _, known := w.members[i].config.IDs[n.Peer]; known || w.members[i].broken != nil {
			t.Errorf("peer %d knows it: %v (%v)", i, known, w.members[i].broken)
		}
	}
	w.propose(0, 0, view.Failed)
	w.until("rank 0 has failed", w.failed(0, 0, 1, 2, 3))
}
