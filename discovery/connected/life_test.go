package connected

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"

	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
)

// TestReceivedBytesAreCounted checks TCP and QUIC, in the direction of a file transfer and in the other one.
func TestReceivedBytesAreCounted(t *testing.T) {
	for name, listen := range map[string]string{"TCP": "/ip4/127.0.0.1/tcp/0", "QUIC": "/ip4/127.0.0.1/udp/0/quic-v1"} {
		t.Run(name, func(t *testing.T) {
			var hosts [2]host.Host
			for i := range hosts {
				h, err := libp2p.New(libp2p.ListenAddrStrings(listen), libp2p.DisableRelay(), libp2p.DisableMetrics(),
					libp2p.Muxer(yamux.ID, Counting(yamux.DefaultTransport)))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { h.Close() })
				hosts[i] = h
			}
			from, to := hosts[0], hosts[1]
			to.SetStreamHandler("/file", func(s network.Stream) { io.Copy(io.Discard, s); s.Close() })
			if err := from.Connect(t.Context(), *host.InfoFromHost(to)); err != nil {
				t.Fatal(err)
			}
			s, err := from.NewStream(t.Context(), to.ID(), "/file")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Reset()
			here, there := s.Conn(), to.Network().ConnsToPeer(from.ID())[0]
			before, beforeThere := arrived(here), arrived(there)
			// Write returns after acknowledgements have arrived here, since it sends more than may be
			// unacknowledged.
			if _, err := s.Write(make([]byte, 1<<20)); err != nil {
				t.Fatal(err)
			}
			if arrived(there) == beforeThere || arrived(here) == before {
				t.Errorf("%d bytes were counted there and %d here; %d and %d before sending", arrived(there), arrived(here), beforeThere, before)
			}
		})
	}
}

// TestBlockedWritesAreCounted checks that only a write that had to wait counts. Such a write shows that the
// other end has received earlier bytes.
func TestBlockedWritesAreCounted(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		defer theirs.Close()
		m := &meter{Conn: ours}
		for _, wait := range []time.Duration{0, minWait, 0, time.Minute} {
			go func() {
				time.Sleep(wait)
				theirs.Read(make([]byte, 100))
			}()
			before := m.arrived.Load()
			if _, err := m.Write(make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			if counts := m.arrived.Load() != before; counts != (wait > 0) {
				t.Errorf("data that is read after %v: arrival counted is %v", wait, counts)
			}
		}
	})
}
