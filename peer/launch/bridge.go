package launch

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// An end is one side of a bridge: the socket to a process or the stream to its
// other peer.
type end interface {
	io.ReadWriteCloser
	CloseWrite() error
	Reset() error // ends both directions at once; may be called at any time
}

// A socket is this peer's end of a socket pair with a process.
type socket struct{ *channel.Socket }

// Reset closes the socket, which has no better way to say that it broke.
func (s socket) Reset() error { return s.Close() }

// carrySize is that of the buffer of a channel: what a libp2p stream takes in
// one frame, of 64 KiB with its header. A byte more would go in a second one.
const carrySize = 64<<10 - 12

// carry copies a channel's bytes to dst until src has no more, and returns when
// dst has closed too, having taken everything. When ctx ends, when either side
// breaks, or when dst closes before the end, both sides are reset: the sender
// then knows that the channel is broken.
func carry(ctx context.Context, dst, src end) {
	reset := func() {
		dst.Reset()
		src.Reset()
	}
	stop := context.AfterFunc(ctx, reset)
	defer stop()
	closed := make(chan error, 1)
	go func() { // ends with dst, which is closed or reset below
		var b [1]byte
		_, err := dst.Read(b[:]) // nothing comes back on a channel
		closed <- err
	}()
	copied := make(chan error, 1)
	go func() { // ends with src, likewise
		_, err := io.CopyBuffer(writer{dst}, reader{src}, make([]byte, carrySize))
		copied <- err
	}()
	select {
	case err := <-copied:
		if err == nil {
			err = dst.CloseWrite()
		}
		if err != nil {
			reset()
		}
		if !errors.Is(<-closed, io.EOF) {
			reset()
		}
	case <-closed:
		reset()
		<-copied
	}
	dst.Close()
	src.Close()
}

// reader and writer hide what else their ends can do: io.Copy would use it
// instead of the buffer.
type (
	reader struct{ io.Reader }
	writer struct{ io.Writer }
)

// socketPair returns a connected pair: one end to be bridged, one to be given
// to a process.
func socketPair() (ours socket, theirs *os.File, err error) {
	a, b, err := proclink.SocketPair()
	if err != nil {
		return socket{}, nil, err
	}
	defer a.Close()
	c, err := channel.OpenSocket(a)
	if err != nil {
		b.Close()
		return socket{}, nil, err
	}
	return socket{c}, b, nil
}
