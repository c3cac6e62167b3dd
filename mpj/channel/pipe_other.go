//go:build !linux

package channel

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// On this system a pipe is a socket pair, because there is no shared memory.

// NewPipe returns the descriptors of both ends of a pipe.
func NewPipe(bool) (writer, reader *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("channel: pipe: %w", os.NewSyscallError("socketpair", err))
	}
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

func newLocalPipe() (*PipeWriter, *PipeReader, error) {
	in, out, err := NewPipe(true)
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	defer out.Close()
	w, err := OpenPipeWriter(in)
	if err != nil {
		return nil, nil, err
	}
	r, err := OpenPipeReader(out, false)
	if err != nil {
		w.Close()
		return nil, nil, err
	}
	return w, r, nil
}

func openPipe(f *os.File) (*net.UnixConn, error) {
	conn, err := FromFile(f)
	if err != nil {
		return nil, err
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return nil, fmt.Errorf("channel: pipe from a %s socket", conn.LocalAddr().Network())
	}
	return unix, nil
}

// A PipeReader is the reading end of a pipe.
type PipeReader struct{ *net.UnixConn }

// OpenPipeReader opens the reading end of a pipe. The caller still closes f. The second argument
// has no effect on this system.
func OpenPipeReader(f *os.File, _ bool) (*PipeReader, error) {
	conn, err := openPipe(f)
	return &PipeReader{conn}, err
}

// A PipeWriter is the writing end of a pipe. Methods other than Write may be called from other
// goroutines.
type PipeWriter struct {
	*net.UnixConn
	gone    chan struct{}
	drained bool // the reader has read everything; set before gone is closed
}

// OpenPipeWriter opens the writing end of a pipe. The caller still closes f.
func OpenPipeWriter(f *os.File) (*PipeWriter, error) {
	conn, err := openPipe(f)
	if err != nil {
		return nil, err
	}
	w := &PipeWriter{UnixConn: conn, gone: make(chan struct{})}
	go w.watch() // ends when either end is closed
	return w, nil
}

func (w *PipeWriter) watch() {
	defer close(w.gone)
	n, err := w.Read(make([]byte, 1))
	w.drained = n == 0 && errors.Is(err, io.EOF)
}

// useHeap does nothing, because there is no ring.
func useHeap(*PipeWriter, *PipeReader) error { return nil }

// Gone is closed when the reader has closed the pipe or ended.
func (w *PipeWriter) Gone() <-chan struct{} { return w.gone }

// Drained reports whether the reader had read everything when Gone was closed.
func (w *PipeWriter) Drained() bool { return w.drained }

func (w *PipeWriter) writeAll(parts [][]byte) (int64, error) {
	v := net.Buffers(parts)
	return v.WriteTo(w.UnixConn)
}

// Close tells the reader that no more bytes follow.
func (w *PipeWriter) Close() error {
	err := w.UnixConn.Close()
	<-w.gone
	return err
}
