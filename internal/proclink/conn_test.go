package proclink

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"reflect"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// connPair returns both ends of a new control socket.
func connPair(t testing.TB) (peer, process *Conn) {
	t.Helper()
	peer, inherited, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	process, err = FromFile(inherited)
	inherited.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close(); process.Close() })
	return peer, process
}

func TestMessagesRoundTrip(t *testing.T) {
	peer, process := connPair(t)
	v := view.New(3, 2)
	sent := []Message{
		{Type: Setup, Job: "j", Process: &view.Process{Rank: 2, Replica: 1}, View: &v},
		{Type: Ping, Count: 1 << 60},
		{Type: Update, View: &v},
	}
	for _, m := range sent {
		if err := peer.Send(m, nil); err != nil {
			t.Fatal(err)
		}
	}
	peer.Close()
	for _, want := range sent {
		got, f, err := process.Receive()
		if err != nil || f != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, %v; want %+v", got, f, err, want)
		}
	}
	if _, _, err := process.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last message: %v, want EOF", err)
	}
}

func TestDescriptorComesWithItsMessage(t *testing.T) {
	peer, process := connPair(t)
	for i := range 5 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if err := peer.Send(Message{Type: Accept, Process: &view.Process{Rank: i}}, r); err != nil {
			t.Fatal(err)
		}
		r.Close()
		w.Write([]byte{byte(i)})
	}
	for i := range 5 {
		m, f, err := process.Receive()
		if err != nil {
			t.Fatal(err)
		}
		var b [1]byte
		if _, err := f.Read(b[:]); err != nil || int(b[0]) != i || m.Process.Rank != i {
			t.Errorf("message of rank %d carries the pipe of rank %d (%v)", m.Process.Rank, b[0], err)
		}
		f.Close()
	}
}

func TestHostileBytesAreRejected(t *testing.T) {
	cases := map[string][]byte{
		"too long":           {0xff, 0xff, 0xff, 0xff},
		"not JSON":           {0, 0, 0, 1, 'x'},
		"truncated":          {0, 0, 0, 9, '{'},
		"no descriptor":      framed(`{"type":"accept","process":{"rank":0,"replica":0}}`),
		"view out of bounds": framed(`{"type":"view","view":{"epoch":1,"n":1000000,"r":1000000}}`),
	}
	for name, b := range cases {
		t.Run(name, func(t *testing.T) {
			peer, process := connPair(t)
			process.unix.Write(b)
			process.Close()
			if m, _, err := peer.Receive(); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("a malformed message was received as %+v, %v", m, err)
			}
		})
	}
}

func framed(s string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...)
}

func FuzzReceive(f *testing.F) {
	f.Add(framed(`{"type":"hello","version":1}`))
	f.Add(framed(`{"type":"view","view":{"epoch":1,"n":1,"r":1,"states":["live"]}}`))
	f.Add([]byte{0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return // larger than the socket's buffer
		}
		peer, process := connPair(t)
		process.unix.Write(b)
		process.Close()
		for {
			m, _, err := peer.Receive()
			if err != nil {
				break
			}
			if m.View != nil && m.View.Valid() != nil {
				t.Fatalf("an invalid view was accepted: %+v", m.View)
			}
		}
	})
}
