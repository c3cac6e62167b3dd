package launch

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// TestErrorsDoNotDiscloseDialResults names a peer at an address with another listener, and at one
// without any.
func TestErrorsDoNotDiscloseDialResults(t *testing.T) {
	from := newMember(t, 0)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { // ends with l
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			c.Close()
		}
	}()
	defer l.Close()
	other, err := p2ppeer.Decode("12D3KooWGRUaNZFQNTiMXxRQSCFS1fCkyjYVeQ5fQrJwGvCbhAnx")
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []int{l.Addr().(*net.TCPAddr).Port, 1} {
		from.Peerstore().ClearAddrs(other)
		from.Peerstore().AddAddr(other, ma.StringCast(fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port)), time.Hour)
		_, err := from.NewStream(t.Context(), other, ChannelProtocol)
		if err == nil {
			t.Fatal("reached")
		}
		if got, want := text(fmt.Errorf("fetch: %w", err)), fmt.Sprintf("peer %s was not reached", other); !strings.HasSuffix(got, want) || !strings.HasPrefix(got, "fetch: ") {
			t.Errorf("got %q for %q", got, err)
		}
	}
}
