package loopback

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
)

func newHost(t *testing.T) *Host {
	t.Helper()
	h, err := libp2p.New(libp2p.NoListenAddrs)
	if err != nil {
		t.Fatal(err)
	}
	l := Wrap(h)
	t.Cleanup(func() { l.Close() })
	return l
}

func TestStreamToSelfReachesItsHandler(t *testing.T) {
	h := newHost(t)
	h.SetStreamHandler("/echo", func(s network.Stream) {
		defer s.Close()
		if s.Conn().RemotePeer() != h.ID() {
			t.Errorf("remote peer %v", s.Conn().RemotePeer())
		}
		io.Copy(s, s)
	})
	s, err := h.NewStream(context.Background(), h.ID(), "/none", "/echo")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Write([]byte("hello"))
	s.CloseWrite()
	if b, err := io.ReadAll(s); string(b) != "hello" || err != nil {
		t.Errorf("the stream returned %q, %v", b, err)
	}
}

func TestNoHandlerIsAnError(t *testing.T) {
	h := newHost(t)
	h.SetStreamHandler("/a", func(s network.Stream) { s.Close() })
	h.RemoveStreamHandler("/a")
	if _, err := h.NewStream(context.Background(), h.ID(), "/a"); err == nil {
		t.Error("a stream was opened for a protocol without a handler")
	}
}

func TestResetIsNotEOF(t *testing.T) {
	h := newHost(t)
	h.SetStreamHandler("/reset", func(s network.Stream) { s.Reset() })
	s, err := h.NewStream(context.Background(), h.ID(), "/reset")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, network.ErrReset) {
		t.Errorf("got %v, want a reset", err)
	}
}

func TestCloseEndsHandlers(t *testing.T) {
	h := newHost(t)
	h.SetStreamHandler("/wait", func(s network.Stream) { s.Read(make([]byte, 1)) })
	if _, err := h.NewStream(context.Background(), h.ID(), "/wait"); err != nil {
		t.Fatal(err)
	}
	h.Close()
	if _, err := h.NewStream(context.Background(), h.ID(), "/wait"); err == nil {
		t.Error("a closed host opened a stream")
	}
}
