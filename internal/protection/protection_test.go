package protection

import (
	"reflect"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

var self = view.Process{Rank: 1}

func TestNoneNumbersMessagesPerRoute(t *testing.T) {
	p := NewNone(self, view.New(3, 1))
	sends := []struct {
		context uint32
		dest    int
		seq     uint64
	}{{1, 0, 1}, {1, 0, 2}, {1, 2, 1}, {2, 0, 1}, {1, 0, 3}}
	for _, s := range sends {
		out := p.Send(Message{Context: s.context, Dest: s.dest, Tag: 7, Payload: []byte("x")})
		want := []Envelope{{
			To: view.Process{Rank: s.dest},
			Frame: channel.Frame{
				Header:  channel.Header{Kind: channel.Data, Context: s.context, Rank: 1, Tag: 7, Seq: s.seq, Size: 1},
				Payload: []byte("x"),
			},
		}}
		if !reflect.DeepEqual(out.Send, want) || len(out.Deliver) != 0 {
			t.Errorf("send %+v: got %+v", s, out)
		}
	}
	if p.Retained() != 0 {
		t.Error("something is kept without replicas")
	}
}

func TestNoneDeliversToItself(t *testing.T) {
	p := NewNone(self, view.New(3, 1))
	out := p.Send(Message{Context: 1, Dest: 1, Tag: 3})
	want := Message{Context: 1, Source: 1, Dest: 1, Tag: 3, Seq: 1}
	if len(out.Send) != 0 || !reflect.DeepEqual(out.Deliver, []Message{want}) {
		t.Errorf("got %+v, want %+v delivered", out, want)
	}
}

func TestNoneGivesBackWhatItsOwnFrameCarries(t *testing.T) {
	sender, receiver := NewNone(self, view.New(2, 1)), NewNone(view.Process{}, view.New(2, 1))
	out := sender.Send(Message{Context: 4, Dest: 0, Tag: 5, Payload: []byte("abc")})
	got, err := receiver.Receive(self, out.Send[0].Frame)
	want := Message{Context: 4, Source: 1, Dest: 0, Tag: 5, Seq: 1, Payload: []byte("abc")}
	if err != nil || !reflect.DeepEqual(got.Deliver, []Message{want}) {
		t.Errorf("got %+v, %v; want %+v", got.Deliver, err, want)
	}
}

func TestNoneRefusesWhatNoProcessSends(t *testing.T) {
	p := NewNone(self, view.New(3, 1))
	data := channel.Frame{Header: channel.Header{Kind: channel.Data, Context: 1}}
	cases := map[string]struct {
		from  view.Process
		frame channel.Frame
	}{
		"from nobody":      {view.Process{Rank: 3}, data},
		"from itself":      {self, data},
		"of another kind":  {view.Process{}, channel.Frame{Header: channel.Header{Kind: channel.Ack}}},
		"from one replica": {view.Process{Replica: 1}, data},
	}
	for name, c := range cases {
		if out, err := p.Receive(c.from, c.frame); err == nil || len(out.Deliver) != 0 {
			t.Errorf("%s: got %+v, %v", name, out, err)
		}
	}
}

func TestNoneDecidesAtOnce(t *testing.T) {
	p := NewNone(self, view.New(3, 1))
	d := Determinant{Point: Point{Context: 1, Index: 9}, Outcome: []byte{1}}
	if out := p.Decide(d); !p.Decider() || !reflect.DeepEqual(out.Decided, []Determinant{d}) {
		t.Errorf("got %+v", out)
	}
}
