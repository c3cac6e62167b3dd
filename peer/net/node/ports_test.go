package node

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	ma "github.com/multiformats/go-multiaddr"
)

func TestPortsArePersistent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports")
	asked := multiaddrs("/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1", "/ip4/127.0.0.1/tcp/4001")
	equal := func(a, b []ma.Multiaddr) bool { return slices.EqualFunc(a, b, ma.Multiaddr.Equal) }
	if got := RecallPorts(file, asked); !equal(got, asked) {
		t.Fatalf("without a file: got %v, want %v", got, asked)
	}
	tcp, udp := freePorts(t)
	listens := []ma.Multiaddr{ma.StringCast("/ip4/127.0.0.1/udp/" + udp + "/quic-v1"), ma.StringCast("/ip4/127.0.0.1/tcp/" + tcp)}
	if err := KeepPorts(file, asked, listens); err != nil {
		t.Fatal(err)
	}
	want := []ma.Multiaddr{listens[1], listens[0], asked[2]}
	if got := RecallPorts(file, asked); !equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, other := RecallPorts(file, multiaddrs("/ip6/::1/tcp/0")), multiaddrs("/ip6/::1/tcp/0"); !equal(got, other) {
		t.Errorf("other addresses requested: got %v, want %v", got, other)
	}

	taken, err := net.Listen("tcp4", "127.0.0.1:"+tcp)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	takenUDP, err := net.ListenPacket("udp4", "127.0.0.1:"+udp)
	if err != nil {
		t.Fatal(err)
	}
	defer takenUDP.Close()
	if got := RecallPorts(file, asked); !equal(got, asked) {
		t.Errorf("ports in use: got %v, want %v", got, asked)
	}
	for _, nonsense := range []string{"{", `{"/ip4/127.0.0.1/tcp/0":"/ip4/192.0.2.1/tcp/1"}`, `{"/ip4/127.0.0.1/tcp/0":"x"}`} {
		if err := os.WriteFile(file, []byte(nonsense), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := RecallPorts(file, asked); !equal(got, asked) {
			t.Errorf("%s: got %v, want %v", nonsense, got, asked)
		}
	}
}

// freePorts returns two ports that were free a moment ago.
func freePorts(t *testing.T) (tcp, udp string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	_, tcp, _ = net.SplitHostPort(l.Addr().String())
	_, udp, _ = net.SplitHostPort(p.LocalAddr().String())
	return tcp, udp
}
