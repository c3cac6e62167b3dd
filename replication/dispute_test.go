package replication

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// disputing returns a process that has produced one message, and the acknowledgement of 1.0 for the message. The
// process is 0.1, in a job of two ranks with three replicas each.
func disputing(t *testing.T) (p *Protocol, ack frame.Frame) {
	v := view.New(2, 3)
	p = New(view.Process{Replica: 1}, v, Secret{1})
	p.Send(protection.Message{Dest: 1, Payload: []byte("hello")})
	receiver := New(view.Process{Rank: 1}, v, Secret{2})
	if _, err := receiver.Receive(view.Process{}, data(0, 1, []byte("hello"))); err != nil {
		t.Fatal(err)
	}
	return p, receiver.Tick().Send[1].Frame
}

// disputed returns replica 2's statement about the message that 1.k has received with number seq.
func disputed(k int, seq uint64) frame.Frame {
	d := dispute{stream: stream{rank: 1}, replica: k, seq: seq, received: 9}
	return control(frame.Dispute, 0, seq, string(d.encode()))
}

// votes returns the divergences that p reports when it receives a frame.
func votes(t *testing.T, p *Protocol, from view.Process, f frame.Frame) []protection.Divergence {
	out, err := p.Receive(from, f)
	if err != nil {
		t.Fatal(err)
	}
	return out.Diverged
}

func TestR1FalseDisputeIsRejected(t *testing.T) {
	p, ack := disputing(t)
	liar, receiver := view.Process{Replica: 2}, view.Process{Rank: 1}
	h := newHash(key{})
	produced := uint64(h.digest(&protection.Message{Seq: 1, Dest: 1, Payload: []byte("hello")}))
	if said := votes(t, p, liar, disputed(0, 1)); len(said) != 0 {
		t.Errorf("the process voted %v before the receiver's acknowledgement", said)
	}
	if said := votes(t, p, receiver, ack); len(said) != 1 || said[0].Differs() || said[0].Produced != produced {
		t.Errorf("the process voted %v, want one vote that the process produced, and the receiver received, digest %016x", said, produced)
	}
	if said := votes(t, p, liar, disputed(0, 1)); len(said) != 1 || said[0].Differs() || said[0].Produced != produced {
		t.Errorf("the process voted %v on the repeated dispute, want the same vote", said)
	}
}

// TestR1DisputeAboutAFailedReceiver covers a receiver whose own statement cannot be obtained.
func TestR1DisputeAboutAFailedReceiver(t *testing.T) {
	p, _ := disputing(t)
	votes(t, p, view.Process{Replica: 2}, disputed(0, 1))
	v, _ := p.v.With(view.Process{Rank: 1}, view.Failed)
	if said := p.View(v).Diverged; len(said) != 1 || !said[0].Differs() {
		t.Errorf("the process voted %v, want one vote against the disputing replica's digest", said)
	}
}

// TestR1DisputeAboutAReceiverThatHasLeft checks that the statement of a receiver that has left is not compared if
// the message was dropped.
func TestR1DisputeAboutAReceiverThatHasLeft(t *testing.T) {
	p, ack := disputing(t)
	v := p.v
	for k := range 3 {
		v, _ = v.With(view.Process{Rank: 1, Replica: k}, view.Finished)
	}
	p.View(v)
	votes(t, p, view.Process{Rank: 1}, ack)
	if said := votes(t, p, view.Process{Replica: 2}, disputed(0, 1)); len(said) != 0 {
		t.Errorf("the process voted %v on a message that was not compared", said)
	}
}

func TestDisputeAboutAnUnknownReceiver(t *testing.T) {
	p, _ := disputing(t)
	other := view.Process{Replica: 2}
	if said := votes(t, p, other, disputed(3, 1)); len(said) != 0 {
		t.Errorf("the process voted %v on a process that has never been in a view", said)
	}
	v, joined, ok := p.v.Join(1)
	if !ok || joined.Replica != 3 {
		t.Fatalf("%v joined, %v; want 1.3", joined, ok)
	}
	if said := p.View(v).Diverged; len(said) != 0 {
		t.Errorf("the process voted %v before the new receiver's acknowledgement", said)
	}
	v, _ = v.With(joined, view.Failed)
	if said := p.View(v).Diverged; len(said) != 1 {
		t.Errorf("the process voted %v, want one vote", said)
	}
}

func TestDisputesAreBounded(t *testing.T) {
	p, ack := disputing(t)
	for seq := range uint64(4 * maxDisputes) {
		votes(t, p, view.Process{Replica: 2}, disputed(0, seq+2))
	}
	if len(p.audit.disputes) != maxDisputes {
		t.Errorf("%d disputes of one replica are pending, want %d", len(p.audit.disputes), maxDisputes)
	}
	votes(t, p, view.Process{}, disputed(0, 1))
	if said := votes(t, p, view.Process{Rank: 1}, ack); len(said) != 1 {
		t.Errorf("the process voted %v, want one vote for the other replica", said)
	}
}
