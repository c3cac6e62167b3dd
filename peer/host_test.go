package peer

import (
	"slices"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"
)

func TestTCPIsDialledBeforeQUICBeforeRelays(t *testing.T) {
	const relayed = "/ip4/192.0.2.9/tcp/1/p2p/12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf/p2p-circuit"
	tests := map[string]struct {
		addrs []string
		want  map[string]time.Duration // delay: at least this
		now   []string                 // delay: none
	}{
		"both": {
			addrs: []string{"/ip4/11.0.0.1/udp/1/quic-v1", "/ip4/11.0.0.1/tcp/1"},
			want:  map[string]time.Duration{"/ip4/11.0.0.1/udp/1/quic-v1": tcpHeadStart},
			now:   []string{"/ip4/11.0.0.1/tcp/1"},
		},
		"only QUIC is not delayed": {
			addrs: []string{"/ip4/11.0.0.1/udp/1/quic-v1"},
			now:   []string{"/ip4/11.0.0.1/udp/1/quic-v1"},
		},
		"relay over TCP is no direct TCP": {
			addrs: []string{relayed, "/ip4/11.0.0.1/udp/1/quic-v1"},
			want:  map[string]time.Duration{relayed: 100 * time.Millisecond},
			now:   []string{"/ip4/11.0.0.1/udp/1/quic-v1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var addrs []ma.Multiaddr
			for _, a := range test.addrs {
				addrs = append(addrs, ma.StringCast(a))
			}
			ranked := rankTCPFirst(addrs)
			if len(ranked) != len(addrs) {
				t.Fatalf("got %d addresses, want %d", len(ranked), len(addrs))
			}
			for _, r := range ranked {
				if slices.Contains(test.now, r.Addr.String()) && r.Delay != 0 {
					t.Errorf("%s: got delay %v, want none", r.Addr, r.Delay)
				}
				if least := test.want[r.Addr.String()]; r.Delay < least {
					t.Errorf("%s: got delay %v, want at least %v", r.Addr, r.Delay, least)
				}
			}
		})
	}
}

func TestOtherVersion(t *testing.T) {
	tests := map[string]bool{
		protocolVersion: false, "p2pmpi/999": true, "p2pmpi/": true, "ipfs/0.1.0": false, "": false,
	}
	for remote, want := range tests {
		if got := otherVersion(remote); got != want {
			t.Errorf("%q: got %v, want %v", remote, got, want)
		}
	}
}

func TestAnyPort(t *testing.T) {
	got := anyPort([]string{"/ip4/127.0.0.1/tcp/4001", "/ip6/::/udp/4001/quic-v1"})
	want := []string{"/ip4/127.0.0.1/tcp/0", "/ip6/::/udp/0/quic-v1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
