package peerstream

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/p2pmpi/p2pmpi/internal/loopback"
)

const testProtocol protocol.ID = "/p2pmpi/peerstream-test/1.0.0"

func newHost(t *testing.T) *loopback.Host {
	t.Helper()
	h, err := libp2p.New(libp2p.NoListenAddrs)
	if err != nil {
		t.Fatal(err)
	}
	l := loopback.Wrap(h)
	t.Cleanup(func() { l.Close() })
	return l
}

// newWriter returns a Writer to h itself. It sends each number as the difference from the previous number on the
// same stream.
func newWriter(h *loopback.Host) *Writer[uint64] {
	return NewWriter(Config[uint64]{
		Host: h, To: h.ID(), Protocol: testProtocol,
		Hello: wrapperspb.UInt64(1000), Timeout: 10 * time.Second, Log: zerolog.Nop(), MaxQueued: 100,
		NewEncoder: func() func(uint64) proto.Message {
			var last uint64
			return func(m uint64) proto.Message {
				difference := m - last
				last = m
				return wrapperspb.UInt64(difference)
			}
		},
	})
}

// startWriter returns a Writer that runs until the test ends.
func startWriter(t *testing.T, h *loopback.Host) *Writer[uint64] {
	w := newWriter(h)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { w.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return w
}

// readAll sends the numbers that arrive on streams to arrived. It resets a stream after limit numbers, and then
// sends to ended.
func readAll(h *loopback.Host, limit int) (arrived <-chan uint64, ended <-chan uint64) {
	numbers, ends := make(chan uint64, 100), make(chan uint64, 100)
	h.SetStreamHandler(testProtocol, func(s network.Stream) {
		r := pbio.NewDelimitedReader(s, 100)
		n := 0
		for ; n < limit; n++ {
			var m wrapperspb.UInt64Value
			if r.ReadMsg(&m) != nil {
				break
			}
			numbers <- m.GetValue()
		}
		_ = s.Reset()
		ends <- uint64(n)
	})
	return numbers, ends
}

func receive(t *testing.T, from <-chan uint64, n int) (got []uint64) {
	t.Helper()
	for range n {
		select {
		case m := <-from:
			got = append(got, m)
		case <-time.After(10 * time.Second):
			t.Fatalf("got %v, want %d messages", got, n)
		}
	}
	return got
}

func TestWriterKeepsItsStream(t *testing.T) {
	h := newHost(t)
	arrived, _ := readAll(h, 100)
	w := startWriter(t, h)
	for _, m := range []uint64{5, 7, 10} {
		w.Put(m)
	}
	if got, want := receive(t, arrived, 4), []uint64{1000, 5, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: one hello, then the differences", got, want)
	}
}

func TestWriterReplacesItsStream(t *testing.T) {
	h := newHost(t)
	arrived, ended := readAll(h, 2)
	w := startWriter(t, h)
	for _, m := range []uint64{5, 7, 10} {
		w.Put(m)
		if got, want := receive(t, arrived, 2), []uint64{1000, m}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v: each stream begins with the hello and a new encoder", got, want)
		}
		receive(t, ended, 1)
	}
}

func TestWriterReportsRefusal(t *testing.T) {
	h := newHost(t) // without a handler for the protocol
	w := newWriter(h)
	if err := w.send(t.Context(), 5); err == nil {
		t.Fatal("a message was sent to a peer that refuses the protocol")
	}
	arrived, _ := readAll(h, 2)
	if err := w.send(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	defer w.drop()
	if got, want := receive(t, arrived, 2), []uint64{1000, 7}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
