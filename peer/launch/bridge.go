package launch

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// A source is where the bytes of a bridge come from: the pipe from a process or
// the stream from its other peer.
type source interface {
	io.ReadCloser
	Reset() error // ends everything at once; may be called at any time
}

// A sink is where they go.
type sink interface {
	io.WriteCloser
	CloseWrite() error // says that nothing follows
	// Left returns when the other end has closed; with nil if it had all that was
	// written, and nothing came back.
	Left() error
	Reset() error
}

// carry copies a channel's bytes to dst until src has no more, and returns when
// dst has closed too, having taken everything. When ctx ends, when either side
// breaks, or when dst closes before the end, both sides are reset: the sender
// then knows that the channel is broken.
func carry(ctx context.Context, dst sink, src source) {
	reset := func() {
		dst.Reset()
		src.Reset()
	}
	stop := context.AfterFunc(ctx, reset)
	defer stop()
	left := make(chan error, 1)
	go func() { left <- dst.Left() }() // ends with dst, which is closed or reset below
	copied := make(chan error, 1)
	go func() { // ends with src, likewise
		_, err := io.Copy(dst, src) // by the pipe among them, which has the buffer
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
		if <-left != nil {
			reset()
		}
	case <-left:
		reset()
		<-copied
	}
	dst.Close()
	src.Close()
}

// A streamEnd is one side of a stream to another peer.
type streamEnd struct{ network.Stream }

var errCameBack = errors.New("something came back on a channel")

// Left waits for the end of the other direction, on which nothing comes.
func (s streamEnd) Left() error {
	n, err := s.Read(make([]byte, 1))
	switch {
	case n > 0:
		return errCameBack
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// inPipe and outPipe are a peer's ends of the pipes of a process.
type (
	inPipe  struct{ *channel.PipeReader }
	outPipe struct{ *channel.PipeWriter }
)

func (p inPipe) Reset() error  { return p.Close() }
func (p outPipe) Reset() error { return p.Close() }

var errUnread = errors.New("the process has not read everything")

// Left waits until the process has closed its end.
func (p outPipe) Left() error {
	<-p.Gone()
	if !p.Drained() {
		return errUnread
	}
	return nil
}

// openIn returns a pipe on which a process writes: this peer's end, and the
// process's.
func openIn() (inPipe, *os.File, error) {
	theirs, file, err := channel.NewPipe(true)
	if err != nil {
		return inPipe{}, nil, err
	}
	defer file.Close()
	ours, err := channel.OpenPipeReader(file, false)
	if err != nil {
		theirs.Close()
		return inPipe{}, nil, err
	}
	return inPipe{ours}, theirs, nil
}

// openOut returns a pipe from which a process reads, likewise.
func openOut() (outPipe, *os.File, error) {
	file, theirs, err := channel.NewPipe(false)
	if err != nil {
		return outPipe{}, nil, err
	}
	defer file.Close()
	ours, err := channel.OpenPipeWriter(file)
	if err != nil {
		theirs.Close()
		return outPipe{}, nil, err
	}
	return outPipe{ours}, theirs, nil
}
