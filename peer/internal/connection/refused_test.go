package connection

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"
)

func TestWhereAPeerIsAskedForAfterItIsGone(t *testing.T) {
	listens := []ma.Multiaddr{
		ma.StringCast("/ip4/11.0.0.1/tcp/1"), ma.StringCast("/ip4/172.17.0.1/tcp/1"), ma.StringCast("/ip4/11.0.0.1/udp/1/quic-v1"),
		ma.StringCast("/ip4/11.0.0.9/tcp/2/p2p/" + relay + "/p2p-circuit"),
	}
	tests := map[string]struct {
		last string
		want []string
	}{
		"over TCP":                        {"/ip4/11.0.0.1/tcp/1", []string{"11.0.0.1:1"}},
		"over QUIC":                       {"/ip4/11.0.0.1/udp/1/quic-v1", []string{"11.0.0.1:1"}},
		"it had dialled":                  {"/ip4/11.0.0.1/tcp/40000", []string{"11.0.0.1:1"}},
		"through a relay":                 {"/ip4/11.0.0.9/tcp/2/p2p/" + relay + "/p2p-circuit", nil},
		"from where it does not listen":   {"/ip4/11.0.0.7/tcp/40000", nil},
		"by its name within this process": {"/memory/1", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := doors(listens, ma.StringCast(test.last)); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestRefusedIfNobodyListensAnyMore(t *testing.T) {
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	shut, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	shut.Close()
	o, s, silent := open.Addr().String(), shut.Addr().String(), "192.0.2.1:1"
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	ended, end := context.WithCancel(t.Context())
	end()
	tests := map[string]struct {
		ctx  context.Context
		at   []string
		want bool
	}{
		"nobody listens":          {t.Context(), []string{s}, true},
		"somebody listens":        {t.Context(), []string{o}, false},
		"nobody at one of two":    {t.Context(), []string{o, s}, false},
		"one of two is not there": {t.Context(), []string{s, silent}, true},
		"the time is over":        {ended, []string{s, silent}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := refused(test.ctx, test.at); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	h, peer := newHost(t), newHost(t)
	if AwaitRefused(t.Context(), h, peer.ID(), ma.StringCast("/ip4/127.0.0.1/tcp/1")) {
		t.Error("refused without a known address")
	}
	h.Peerstore().AddAddrs(peer.ID(), peer.Addrs(), time.Hour)
	if AwaitRefused(short, h, peer.ID(), peer.Addrs()[0]) {
		t.Error("refused while it listens")
	}
	go func() { // ends at once
		peer.Close()
	}()
	if !AwaitRefused(t.Context(), h, peer.ID(), peer.Addrs()[0]) {
		t.Error("not refused when it is gone")
	}
}
