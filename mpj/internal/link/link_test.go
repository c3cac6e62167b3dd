package link

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An audience is a fake engine that passes on the calls of the link.
type audience struct {
	views   chan view.View
	accepts chan view.Process
}

func (a audience) View(v view.View) { a.views <- v }

func (a audience) Reopen(to view.Process) { a.accepts <- to }

func (a audience) Accept(from view.Process, r channel.Receiver) {
	r.Close()
	a.accepts <- from
}

// dial returns both ends of a control socket after the greeting, in a job of 2 ranks, and the
// channel on which the link reports the loss of the control socket.
func dial(t *testing.T) (peer *proclink.Conn, l *Link, e audience, lost chan error) {
	t.Helper()
	peer, file, err := proclink.Pair()
	if err != nil {
		t.Fatal(err)
	}
	self, v := view.Process{Rank: 1}, view.New(2, 1)
	if err := peer.Send(proclink.Message{Type: proclink.Setup, Process: &self, View: &v}, nil); err != nil {
		t.Fatal(err)
	}
	if l, err = Dial(file); err != nil {
		t.Fatal(err)
	}
	if m, _, err := peer.Receive(); err != nil || m.Type != proclink.Hello || m.Version != version.Protocol {
		t.Fatalf("got %+v, %v; want hello", m, err)
	}
	e, lost = audience{make(chan view.View, 1), make(chan view.Process, 1)}, make(chan error, 1)
	l.Serve(e, func(err error) { lost <- err })
	t.Cleanup(func() { l.Close(); peer.Close() })
	return peer, l, e, lost
}

func TestInvalidGreetingIsAnError(t *testing.T) {
	v, self, outside := view.New(2, 1), view.Process{Rank: 1}, view.Process{Rank: 2}
	cases := map[string]proclink.Message{
		"start message":   {Type: proclink.Start, View: &v},
		"no view":         {Type: proclink.Setup, Process: &self},
		"no process":      {Type: proclink.Setup, View: &v},
		"outside the job": {Type: proclink.Setup, Process: &outside, View: &v},
	}
	for name, m := range cases {
		t.Run(name, func(t *testing.T) {
			peer, file, err := proclink.Pair()
			if err != nil {
				t.Fatal(err)
			}
			defer peer.Close()
			if err := peer.Send(m, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := Dial(file); err == nil {
				t.Error("the process joined")
			}
		})
	}
}

func TestViewsAndChannelsReachTheEngine(t *testing.T) {
	peer, _, e, _ := dial(t)
	v, _ := view.New(2, 1).With(view.Process{Rank: 0}, view.Finished)
	peer.Send(proclink.Message{Type: proclink.Update, View: &v}, nil)
	if got := <-e.views; got.Epoch != v.Epoch {
		t.Errorf("got view %d, want %d", got.Epoch, v.Epoch)
	}
	a, b, err := channel.NewPipe(false)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	peer.Send(proclink.Message{Type: proclink.Accept, Process: &view.Process{Rank: 0}, Kind: proclink.Stream}, b)
	b.Close()
	if from := <-e.accepts; from.Rank != 0 {
		t.Errorf("got a channel from %v", from)
	}
}

func sockets(t *testing.T) (a, b *os.File) {
	t.Helper()
	a, b, err := proclink.SocketPair()
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

func TestRefusalIsTheErrorOfOpen(t *testing.T) {
	peer, l, _, _ := dial(t)
	go func() {
		m, _, _ := peer.Receive()
		peer.Send(proclink.Message{Type: proclink.Refused, Process: m.Process, Text: "not today"}, nil)
	}()
	_, err := l.Open(context.Background(), view.Process{Rank: 0})
	if err == nil || !strings.Contains(err.Error(), "open a channel to 0.0: not today") {
		t.Errorf("Open returned %v, want the refusal of the peer", err)
	}
}

// TestOpenMayBeCancelled checks that an answer that arrives after the caller has given up closes
// its descriptor.
func TestOpenMayBeCancelled(t *testing.T) {
	peer, l, e, _ := dial(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Open(ctx, view.Process{Rank: 0}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open with a cancelled context returned %v", err)
	}
	ours, theirs := sockets(t)
	defer ours.Close()
	peer.Send(proclink.Message{Type: proclink.Channel, Process: &view.Process{Rank: 0}, Kind: proclink.Stream}, theirs)
	theirs.Close()
	v := view.New(2, 1)
	peer.Send(proclink.Message{Type: proclink.Update, View: &v}, nil)
	<-e.views // earlier messages have been handled
	if n, err := ours.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("the descriptor is still open: read %d, %v", n, err)
	}
}

func TestClosedControlSocketIsReportedAsLost(t *testing.T) {
	v := view.New(1, 1)
	cases := map[string]func(*proclink.Conn){
		"closed":                    func(c *proclink.Conn) { c.Close() },
		"unknown type":              func(c *proclink.Conn) { c.Send(proclink.Message{Type: "nonsense"}, nil) },
		"message for a peer":        func(c *proclink.Conn) { c.Send(proclink.Message{Type: proclink.Hello}, nil) },
		"update without a view":     func(c *proclink.Conn) { c.Send(proclink.Message{Type: proclink.Update}, nil) },
		"refused without a process": func(c *proclink.Conn) { c.Send(proclink.Message{Type: proclink.Refused}, nil) },
		"second setup":              func(c *proclink.Conn) { c.Send(proclink.Message{Type: proclink.Setup, View: &v}, nil) },
	}
	for name, end := range cases {
		t.Run(name, func(t *testing.T) {
			peer, l, _, lost := dial(t)
			end(peer)
			if err := <-lost; err == nil || !strings.Contains(err.Error(), "control socket") {
				t.Errorf("the lost control socket was reported as %v", err)
			}
			if _, err := l.Open(context.Background(), view.Process{}); err == nil {
				t.Error("a channel was opened over a closed control socket")
			}
		})
	}
}

func TestGoodbyeIsNotReportedAsLost(t *testing.T) {
	peer, l, _, lost := dial(t)
	go func() {
		peer.Receive()
		peer.Send(proclink.Message{Type: proclink.Bye}, nil)
		peer.Close()
	}()
	if err := l.Finalize(context.Background(), nil, false); err != nil {
		t.Error(err)
	}
	l.Close()
	select {
	case err := <-lost:
		t.Errorf("lost: %v", err)
	default:
	}
}

func TestStartRecordsTheToleratedHang(t *testing.T) {
	peer, l, e, _ := dial(t)
	v := view.New(2, 1)
	peer.Send(proclink.Message{Type: proclink.Start, View: &v, ToleratedHang: 40 * time.Second}, nil)
	if err := l.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	<-e.views
	if got := l.ToleratedHang(); got != 40*time.Second {
		t.Errorf("tolerated hang %v, want 40 s", got)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	_, l, _, _ := dial(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Start with a cancelled context returned %v", err)
	}
}
