package replication

import (
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

func data(rank uint32, seq uint64, payload []byte) frame.Frame {
	return frame.Frame{
		Header:  frame.Header{Kind: frame.Data, Rank: rank, Seq: seq, Size: uint64(len(payload))},
		Payload: payload,
	}
}

func control(kind frame.Kind, rank uint32, seq uint64, payload string) frame.Frame {
	return frame.Frame{Header: frame.Header{Kind: kind, Rank: rank, Seq: seq}, Payload: []byte(payload)}
}

// numbers returns the numbers of the messages that out delivers.
func numbers(out protection.Output) []uint64 {
	var got []uint64
	for _, m := range out.Deliver {
		got = append(got, m.Seq)
	}
	return got
}

func TestR2DuplicatesAndGapsAreDropped(t *testing.T) {
	p := New(view.Process{Rank: 0}, view.New(2, 2), Secret{})
	steps := []struct {
		name    string
		replica int
		seq     uint64
		want    []uint64
	}{
		{"first", 0, 1, []uint64{1}},
		{"duplicate", 0, 1, nil},
		{"next", 0, 2, []uint64{2}},
		{"predecessors are missing", 0, 4, nil},
		{"new master sends from the start", 1, 1, nil},
		{"new master continues", 1, 3, []uint64{3}},
		{"resent after the gap", 0, 4, []uint64{4}},
	}
	for _, s := range steps {
		out, err := p.Receive(view.Process{Rank: 1, Replica: s.replica}, data(1, s.seq, nil))
		if got := numbers(out); err != nil || !slices.Equal(got, s.want) {
			t.Errorf("%s: delivered %v, %v; want %v", s.name, got, err, s.want)
		}
	}
}

func TestR2DuplicateIsAcknowledgedAgain(t *testing.T) {
	p := New(view.Process{Rank: 0}, view.New(2, 2), Secret{})
	for i := range 2 {
		if _, err := p.Receive(view.Process{Rank: 1}, data(1, 1, nil)); err != nil {
			t.Fatal(err)
		}
		out := p.Tick()
		if len(out.Send) != 2 || out.Send[0].Frame.Kind != frame.Ack || out.Send[0].Frame.Seq != 1 {
			t.Errorf("arrival %d: sent %+v, want one acknowledgement of message 1 to each replica", i, out.Send)
		}
	}
	if out := p.Tick(); len(out.Send) != 0 {
		t.Errorf("the process acknowledged without an arrival: %+v", out.Send)
	}
}

func TestAcknowledgementsGoToAllReplicasInTime(t *testing.T) {
	tests := []struct {
		name    string
		size    int
		arrival int // number of the arrival that is acknowledged
	}{
		{"by number", 0, ackMessages},
		{"by bytes", ackBytes / 4, 4},
		{"one large message", ackBytes, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := New(view.Process{Rank: 0}, view.New(2, 3), Secret{})
			for i := 1; i <= tt.arrival; i++ {
				out, err := p.Receive(view.Process{Rank: 1}, data(1, uint64(i), make([]byte, tt.size)))
				if err != nil || len(out.Send) != 0 && i < tt.arrival {
					t.Fatalf("arrival %d: %+v, %v", i, out.Send, err)
				}
				if i < tt.arrival {
					continue
				}
				for k, e := range out.Send {
					if want := (view.Process{Rank: 1, Replica: k}); e.To != want || e.Frame.Seq != uint64(i) {
						t.Errorf("the process acknowledged %d to %v, want %d to %v", e.Frame.Seq, e.To, i, want)
					}
				}
				if len(out.Send) != 3 {
					t.Errorf("%d acknowledgements, want 3", len(out.Send))
				}
			}
			if out := p.Tick(); len(out.Send) != 0 {
				t.Errorf("the process acknowledged twice: %+v", out.Send)
			}
		})
	}
}

// TestMastersAreServedFirst checks that the new master of a rank gets messages and acknowledgements before the other
// replicas of the rank.
func TestMastersAreServedFirst(t *testing.T) {
	v, _ := view.New(2, 3).Promote(view.Process{Rank: 1, Replica: 2})
	p := New(view.Process{Rank: 0}, v, Secret{})
	want := []view.Process{{Rank: 1, Replica: 2}, {Rank: 1, Replica: 0}, {Rank: 1, Replica: 1}}
	expect := func(what string, out protection.Output) {
		t.Helper()
		var got []view.Process
		for _, e := range out.Send {
			got = append(got, e.To)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s to %v, want %v", what, got, want)
		}
	}
	expect("a message", p.Send(protection.Message{Dest: 1}))
	if _, err := p.Receive(want[0], data(1, 1, nil)); err != nil {
		t.Fatal(err)
	}
	expect("an acknowledgement", p.Tick())
}

func TestSelfMessagesAreDeliveredLocally(t *testing.T) {
	for k := range 2 {
		p := New(view.Process{Rank: 1, Replica: k}, view.New(2, 2), Secret{})
		for seq := uint64(1); seq < 3; seq++ {
			out := p.Send(protection.Message{Dest: 1})
			if len(out.Send) != 0 || len(out.Deliver) != 1 || out.Deliver[0].Seq != seq || out.Deliver[0].Source != 1 {
				t.Errorf("replica %d: %+v", k, out)
			}
		}
		if p.Retained() != 0 {
			t.Errorf("replica %d retains %d bytes", k, p.Retained())
		}
	}
}

func TestR2FlushKeepsProgramOrder(t *testing.T) {
	p := New(view.Process{Rank: 0, Replica: 1}, view.New(3, 2), Secret{})
	var want []uint64
	for i := range 60 {
		p.Send(protection.Message{Context: uint32(i % 3), Dest: 1 + i%2, Tag: int32(i)})
		want = append(want, uint64(i))
	}
	v, _ := view.New(3, 2).With(view.Process{Rank: 0}, view.Failed)
	var got []uint64
	for _, e := range p.View(v).Send {
		if e.To.Replica == 1 {
			got = append(got, uint64(e.Frame.Tag))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the process sent %v, want %v", got, want)
	}
}

func TestR3TableForgetsInOrder(t *testing.T) {
	p := New(view.Process{Rank: 0}, view.New(2, 2), Secret{})
	most := 0
	for i := uint64(1); i <= 10000; i++ {
		p.Send(protection.Message{Dest: 1, Payload: make([]byte, 9)})
		most = max(most, p.Retained())
		if i%100 == 0 {
			for k := range 2 {
				if _, err := p.Receive(view.Process{Rank: 1, Replica: k}, control(frame.Ack, 1, i-50, "")); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if b := p.outbox.all[0]; p.Retained() != 500 || most != 1500 || cap(b.queue) > 1024 {
		t.Errorf("the process retains %d bytes, at most %d, in a queue of %d; want 500, 1500, no more than 1024", p.Retained(), most, cap(b.queue))
	}
}

func TestR4MasterFromTheStartAsksFirst(t *testing.T) {
	v, _ := view.New(1, 3).With(view.Process{}, view.Failed)
	p := New(view.Process{Replica: 1}, v, Secret{})
	if p.Decider() {
		t.Error("the new master decides before the sync replies")
	}
	if out := p.Tick(); len(out.Send) != 1 || out.Send[0].Frame.Kind != frame.Sync {
		t.Errorf("first tick: %+v", out.Send)
	}
	if _, err := p.Receive(view.Process{Replica: 2}, control(frame.SyncReply, 0, v.Since[0], "")); err != nil || !p.Decider() {
		t.Errorf("after the answer: %v, decider %v", err, p.Decider())
	}
}

func TestR5FinishedProcess(t *testing.T) {
	v, _ := view.New(2, 2).With(view.Process{Rank: 1}, view.Finished)
	p := New(view.Process{Rank: 0}, v, Secret{})
	out, err := p.Receive(view.Process{Rank: 1}, data(1, 1, nil))
	if got := numbers(out); err != nil || !slices.Equal(got, []uint64{1}) {
		t.Errorf("the last message of the finished process: delivered %v, %v", got, err)
	}
	if out := p.Tick(); len(out.Send) != 1 || out.Send[0].To != (view.Process{Rank: 1, Replica: 1}) {
		t.Errorf("the process acknowledged to %+v, want 1.1 only", out.Send)
	}
	if out := p.Reopened(view.Process{Rank: 1}); len(out.Send) != 0 {
		t.Errorf("reopened: %+v", out.Send)
	}
}

func TestOlderViewsAreIgnored(t *testing.T) {
	v2, _ := view.New(2, 2).With(view.Process{Rank: 1}, view.Failed)
	v3, _ := v2.With(view.Process{Rank: 0}, view.Failed)
	p := New(view.Process{Rank: 0, Replica: 1}, view.New(2, 2), Secret{})
	p.View(v3)
	if p.View(v2); p.v.Epoch != 3 || !p.Decider() {
		t.Errorf("the process is in epoch %d, decider %v", p.v.Epoch, p.Decider())
	}
}

// TestReceiveRefuses checks that protocol violations return an error and change nothing.
func TestReceiveRefuses(t *testing.T) {
	big := string(make([]byte, maxOutcome+1))
	conflict := string(appendDeterminant(nil, protection.Determinant{Point: protection.Point{Index: 1}, Outcome: []byte("b")}))
	unknown := string(appendDeterminant(nil, protection.Determinant{Point: protection.Point{Index: 9}}))
	tests := []struct {
		name          string
		replica, from view.Process
		f             frame.Frame
	}{
		{"from itself", view.Process{}, view.Process{}, data(0, 1, nil)},
		{"from an unknown process", view.Process{}, view.Process{Rank: 7}, data(7, 1, nil)},
		{"from a negative rank", view.Process{}, view.Process{Rank: -1}, data(1<<32-1, 1, nil)},
		{"wrong rank in the header", view.Process{}, view.Process{Rank: 1}, data(0, 1, nil)},
		{"data without a number", view.Process{}, view.Process{Rank: 1}, data(1, 0, nil)},
		{"data within the rank", view.Process{}, view.Process{Replica: 1}, data(0, 1, nil)},
		{"ack within the rank", view.Process{}, view.Process{Replica: 1}, control(frame.Ack, 0, 1, "")},
		{"ack of message 0", view.Process{}, view.Process{Rank: 1}, control(frame.Ack, 1, 0, "")},
		{"ack with a truncated digest", view.Process{}, view.Process{Rank: 1}, control(frame.Ack, 1, 2, string(make([]byte, keySize+12)))},
		{"ack with a key alone", view.Process{}, view.Process{Rank: 1}, control(frame.Ack, 1, 2, string(make([]byte, keySize)))},
		{"ack with too many digests", view.Process{}, view.Process{Rank: 1}, control(frame.Ack, 1, 99, string(make([]byte, keySize+8*(ackMessages+1))))},
		{"ack with more digests than messages", view.Process{}, view.Process{Rank: 1}, control(frame.Ack, 1, 1, string(make([]byte, keySize+16)))},
		{"determinant of another rank", view.Process{}, view.Process{Rank: 1}, control(frame.Determinant, 1, 1, "")},
		{"unknown kind", view.Process{}, view.Process{Replica: 1}, control(200, 0, 1, "")},
		{"determinant too long", view.Process{Replica: 1}, view.Process{}, control(frame.Determinant, 0, 7, big)},
		{"conflicting outcome", view.Process{Replica: 1}, view.Process{}, control(frame.Determinant, 0, 1, "b")},
		{"stable for an unknown point", view.Process{Replica: 1}, view.Process{}, control(frame.Stable, 0, 9, "")},
		{"ack of a point that was not proposed", view.Process{}, view.Process{Replica: 1}, control(frame.DeterminantAck, 0, 9, "")},
		{"sync without a term", view.Process{Replica: 1}, view.Process{Replica: 2}, control(frame.Sync, 0, 0, "")},
		{"reply without a term", view.Process{}, view.Process{Replica: 2}, control(frame.SyncReply, 0, 0, "")},
		{"truncated reply", view.Process{}, view.Process{Replica: 1}, control(frame.SyncReply, 0, firstTerm, conflict[:9])},
		{"reply with a conflicting outcome", view.Process{}, view.Process{Replica: 1}, control(frame.SyncReply, 0, firstTerm, conflict)},
		{"reply with a point that was not proposed", view.Process{}, view.Process{Replica: 1}, control(frame.SyncReply, 0, firstTerm, unknown)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := New(tt.replica, view.New(2, 3), Secret{})
			if point := (protection.Point{Index: 1}); p.Decider() {
				p.Decide(protection.Determinant{Point: point, Outcome: []byte("a")})
			} else if _, err := p.Receive(view.Process{}, control(frame.Determinant, 0, 1, "a")); err != nil {
				t.Fatal(err)
			}
			before := p.Retained()
			out, err := p.Receive(tt.from, tt.f)
			if err == nil || len(out.Send)+len(out.Deliver)+len(out.Decided) != 0 || p.Retained() != before {
				t.Errorf("got %+v, %v, retains %d", out, err, p.Retained())
			}
		})
	}
}

// TestR4MessagesOfAnOldMasterAreIgnored checks that frames of a former master that does not know of its successor
// change nothing and are not a protocol violation.
func TestR4MessagesOfAnOldMasterAreIgnored(t *testing.T) {
	tests := []struct {
		name string
		f    frame.Frame
	}{
		{"a conflicting outcome", control(frame.Determinant, 0, 1, "b")},
		{"a new outcome", control(frame.Determinant, 0, 7, "")},
		{"stable for a known outcome", control(frame.Stable, 0, 1, "")},
		{"stable for an unknown outcome", control(frame.Stable, 0, 9, "")},
		{"an answer without a question", control(frame.SyncReply, 0, 1, "")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := New(view.Process{Replica: 1}, view.New(2, 3), Secret{})
			if _, err := p.Receive(view.Process{}, control(frame.Determinant, 0, 1, "a")); err != nil {
				t.Fatal(err)
			}
			before := p.Retained()
			out, err := p.Receive(view.Process{Replica: 2}, tt.f)
			if err != nil || len(out.Send)+len(out.Decided) != 0 || p.Retained() != before {
				t.Errorf("got %+v, %v, retains %d", out, err, p.Retained())
			}
		})
	}
}

func TestR4MasterStepsDownBeforeItAnswersTheNext(t *testing.T) {
	p := New(view.Process{}, view.New(2, 2), Secret{})
	p.Decide(protection.Determinant{Point: protection.Point{Index: 1}, Outcome: []byte("a")})
	p.Send(protection.Message{Dest: 1, Payload: []byte("x")})
	if out, err := p.Receive(view.Process{Replica: 1}, control(frame.Sync, 0, 2, "")); err != nil || len(out.Send) != 0 {
		t.Fatalf("the process sent %+v, %v before its view named the other master", out.Send, err)
	}
	second, _ := view.New(2, 2).Promote(view.Process{Replica: 1})
	out := p.View(second)
	if p.Decider() || len(out.Send) != 1 || out.Send[0].Frame.Kind != frame.SyncReply || len(out.Send[0].Frame.Payload) == 0 {
		t.Fatalf("decider %v, sent %+v; want a SyncReply with the held outcome", p.Decider(), out.Send)
	}
	if out := p.Send(protection.Message{Dest: 1, Payload: []byte("y")}); len(out.Send) != 0 {
		t.Errorf("a replica that is not master sent %+v", out.Send)
	}
	third, _ := second.Promote(view.Process{})
	if out := p.View(third); p.Decider() || len(out.Send) != 2+2+1 {
		t.Errorf("decider %v, sent %+v; want two messages to two replicas, and Sync", p.Decider(), out.Send)
	}
	if _, err := p.Receive(view.Process{Replica: 1}, control(frame.SyncReply, 0, 1, "")); err != nil || p.Decider() {
		t.Errorf("decider %v, %v after a reply of an earlier term; want false", p.Decider(), err)
	}
	if _, err := p.Receive(view.Process{Replica: 1}, control(frame.SyncReply, 0, 3, "")); err != nil || p.Decider() {
		t.Errorf("decider %v, %v before the earlier outcome is stable; want false", p.Decider(), err)
	}
	if out, err := p.Receive(view.Process{Replica: 1}, control(frame.DeterminantAck, 0, 1, "")); err != nil || !p.Decider() || len(out.Decided) != 1 {
		t.Errorf("decider %v, decided %v, %v once the earlier outcome is stable", p.Decider(), out.Decided, err)
	}
}

// TestR4NewMasterFirstStabilizesHeldOutcomes checks that a new master makes held outcomes stable before it
// decides. Otherwise, of two receives that match any message, the second could get the message that the held
// outcome assigns to the first.
func TestR4NewMasterFirstStabilizesHeldOutcomes(t *testing.T) {
	p := New(view.Process{Replica: 1}, view.New(1, 3), Secret{})
	if _, err := p.Receive(view.Process{}, frame.Frame{Header: frame.Header{Kind: frame.Determinant, Seq: 1}, Payload: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	v, _ := view.New(1, 3).With(view.Process{}, view.Failed)
	p.View(v)
	if _, err := p.Receive(view.Process{Replica: 2}, control(frame.SyncReply, 0, v.Since[0], "")); err != nil || p.Decider() {
		t.Fatalf("decider %v, %v while another replica may lack a held outcome; want false", p.Decider(), err)
	}
	if out := p.Decide(protection.Determinant{Point: protection.Point{Index: 2}, Outcome: []byte("b")}); len(out.Send)+len(out.Decided) != 0 {
		t.Errorf("the process decided another point: %+v", out)
	}
	if out, err := p.Receive(view.Process{Replica: 2}, control(frame.DeterminantAck, 0, 1, "")); err != nil || !p.Decider() || len(out.Decided) != 1 {
		t.Errorf("decider %v, decided %v, %v once every replica has the outcome", p.Decider(), out.Decided, err)
	}
	if out := p.Decide(protection.Determinant{Point: protection.Point{Index: 1}, Outcome: []byte("b")}); len(out.Send)+len(out.Decided) != 0 {
		t.Errorf("the process decided the point again: %+v", out)
	}
}

func TestContextsFromOneRankAreBounded(t *testing.T) {
	p := New(view.Process{Rank: 0}, view.New(2, 2), Secret{})
	for _, kind := range []frame.Kind{frame.Data, frame.Ack} {
		f := control(kind, 1, 1, "")
		for i := range uint32(maxContexts) {
			f.Context = i
			if _, err := p.Receive(view.Process{Rank: 1}, f); err != nil {
				t.Fatal(err)
			}
		}
		f.Context = maxContexts
		if _, err := p.Receive(view.Process{Rank: 1}, f); err == nil {
			t.Errorf("kind %d: context %d was accepted", kind, maxContexts)
		}
	}
}
