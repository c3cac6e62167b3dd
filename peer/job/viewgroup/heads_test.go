package viewgroup

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// TestV4HeadsOfALiarDoNotStopTheOthers: an honest leader shows what a voter has signed. If that is no proof, or too long to
// be sent to others, the leader still replaces a lost voter.
func TestV4HeadsOfALiarDoNotStopTheOthers(t *testing.T) {
	const liar = 5 // the voter with the highest number, after the loss of the submitter's peer
	for name, alter := range map[string]func(s *Statement){
		"another leader": func(s *Statement) { s.Candidate = 77; s.Signature = signs(liar)(text(s)) },
		"padded": func(s *Statement) {
			s.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 100, protowire.BytesType), make([]byte, maxMessage-3000)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			tried := 0
			for seed := range uint64(8) {
				if w := newWorld(t, seed, 7); w.replacesDespite(liar, alter) {
					tried++
				}
			}
			if tried == 0 {
				t.Error("the liar led every time")
			}
		})
	}
}

// replacesDespite checks that a lost voter is replaced although a liar alters the heads that it signs. It returns false if
// the liar leads.
func (w *world) replacesDespite(liar int, alter func(s *Statement)) bool {
	w.Helper()
	w.ticks(5)
	w.liar, w.limit = liar, maxMessage
	w.alters = func(m *Message) {
		for _, s := range append(m.Heads, m.Ballot) {
			if s.GetKind() == pb.Statement_HEAD && int(s.GetBy()) == liar && s.GetCandidate() != 77 {
				alter(s)
			}
		}
	}
	w.crash(submitterPeer)
	w.ticks(300)
	if w.members[liar].Leads() {
		return false
	}
	lost := 1
	if w.members[lost].Leads() {
		lost = 2
	}
	w.crash(lost)
	p := view.Process{Rank: lost - 1}
	for i, m := range w.members {
		if m != nil {
			w.carry(i, m.Propose(signed(i, view.Change{Process: p, To: view.Failed})))
		}
	}
	w.ticks(600)
	for i, m := range w.members {
		if m != nil && i != liar && (m.Votes(lost) || m.View().Live(p)) {
			w.Errorf("at peer %d, peer %d votes: %v, its process is live: %v; %s", i, lost, m.Votes(lost), m.View().Live(p), w.state())
		}
	}
	return true
}
