package replication

import (
	"bytes"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// FuzzDecodeHeld checks that any payload of a SyncReply is harmless, and that its encoding is unique.
func FuzzDecodeHeld(f *testing.F) {
	d := protection.Determinant{Point: protection.Point{Context: 1, Index: 2}, Outcome: []byte("abc")}
	one := appendDeterminant(nil, d)
	d.Index = 3
	f.Add([]byte{})
	f.Add(one)
	f.Add(appendDeterminant(one, d))
	f.Add(append(one, one...))
	f.Add(one[:heldHeader+1])
	f.Fuzz(func(t *testing.T, b []byte) {
		ds, err := decodeHeld(b)
		if err != nil {
			return
		}
		var back []byte
		for _, d := range ds {
			back = appendDeterminant(back, d)
		}
		if !bytes.Equal(back, b) {
			t.Errorf("%x decodes to %v, which encodes to %x", b, ds, back)
		}
	})
}

// FuzzReceive passes frames to a replica that becomes master halfway. The input has five bytes and a payload per
// frame. The replica must not panic, must change nothing when it returns an error, and must not keep more than it
// was given.
func FuzzReceive(f *testing.F) {
	row := func(from byte, kind frame.Kind, seq byte, payload string) []byte {
		return append([]byte{from, byte(kind), 0, seq, byte(len(payload))}, payload...)
	}
	f.Add(row(3, frame.Data, 1, "hello"))
	f.Add(append(row(0, frame.Determinant, 1, "a"), row(0, frame.Stable, 1, "")...))
	f.Add(append(row(2, frame.Sync, 0, ""), row(3, frame.Ack, 9, "")...))
	f.Add(append(row(0x82, frame.SyncReply, 0, string(appendDeterminant(nil, protection.Determinant{}))),
		row(2, frame.DeterminantAck, 0, "")...))
	f.Add(append(row(3, frame.Ack, 2, string(make([]byte, keySize+16))), row(3, frame.Ack, 3, string(make([]byte, keySize+8)))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		v := view.New(2, 3)
		p := New(view.Process{Replica: 1}, v, Secret{})
		p.Send(protection.Message{Dest: 1, Payload: []byte("kept")})
		given := p.Retained() + len(b)
		for len(b) >= 5 {
			from := view.Process{Rank: int(b[0]&7) / 3, Replica: int(b[0]&7) % 3}
			if b[0]&0x80 != 0 {
				next, _ := v.With(view.Process{}, view.Failed)
				p.View(next)
			}
			n := min(int(b[4]), len(b)-5)
			fr := frame.Frame{
				Header:  frame.Header{Kind: frame.Kind(b[1]), Context: uint32(b[2]), Rank: uint32(from.Rank), Seq: uint64(b[3]), Size: uint64(n)},
				Payload: b[5 : 5+n],
			}
			b = b[5+n:]
			before := p.Retained()
			if out, err := p.Receive(from, fr); err != nil && (p.Retained() != before || len(out.Send)+len(out.Deliver)+len(out.Decided) > 0) {
				t.Fatalf("Receive returned %v, but also output %+v", err, out)
			}
		}
		if p.Retained() > given {
			t.Errorf("the process retains %d of %d bytes", p.Retained(), given)
		}
	})
}

// FuzzReceiveMessageLog passes pieces of its rank's message log to a new replica. The replica must not panic, and
// must not keep more than it was given.
func FuzzReceiveMessageLog(f *testing.F) {
	m := protection.Message{Source: 1, Seq: 1, Payload: []byte("hello")}
	log := append(protection.AppendMessage([]byte{byte(protection.RecordStart)}, &m), m.Payload...)
	log = protection.AppendOutcome(log, &protection.Determinant{Outcome: []byte("head")})
	f.Add(log, 5)
	f.Add(log, 1)
	f.Add(append(log, log...), 100)
	f.Add(resumed(), 1)
	f.Add(resumed(), 1000)
	f.Fuzz(func(t *testing.T, log []byte, size int) {
		donor := view.Process{}
		v, self, _ := view.New(2, 1).Join(0)
		p := NewJoining(self, v, Secret{})
		p.Tick()
		for _, q := range []view.Process{donor, {Rank: 1}} {
			if _, err := p.Receive(q, control(frame.Greet, uint32(q.Rank), 0, "")); err != nil {
				t.Fatal(err)
			}
		}
		position, given := uint64(0), len(log)
		for p.Joining() {
			piece := log[:min(max(1, size), len(log))]
			log = log[len(piece):]
			out, err := p.Receive(donor, protection.MessageLogFrame(0, position, bytes.Clone(piece), len(log) == 0))
			if err != nil {
				return
			}
			if p.Checkpointed() == protection.Arrived {
				var s protection.Snapshot
				s, out = p.Resume()
				given -= s.Size() / 100 // a record takes more than its bytes
			}
			if out.Lost != "" {
				return
			}
			for _, m := range out.Deliver {
				given -= len(m.Payload)
			}
			given -= len(out.State)
			position += uint64(len(piece))
		}
		if given < 0 {
			t.Errorf("the process delivers %d bytes more than it received", -given)
		}
	})
}

// resumed returns a message log with a checkpoint.
func resumed() []byte {
	payload := []byte("hello")
	m := protection.Message{Source: 1, Seq: 1, Payload: payload}
	b := append(protection.AppendMessage([]byte{byte(protection.RecordResumed)}, &m), payload...)
	b = append(protection.AppendState(b, 5), "state"...)
	b = protection.AppendSnapshot(b, &protection.Snapshot{
		Sent: []protection.Position{{Rank: 1, Seq: 3}}, Received: []protection.Position{{Rank: 1, Seq: 4}},
		Points: []protection.Position{{Seq: 7}}, Kept: []protection.Message{{Source: 0, Dest: 1, Seq: 4, Payload: payload}},
		Unreceived: []protection.Message{{Source: 1, Seq: 2, Payload: payload}}, Own: []byte("own"),
	})
	m.Seq = 5
	return append(protection.AppendMessage(b, &m), payload...)
}
