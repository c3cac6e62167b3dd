package channel

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
)

// A PipeWriter is the writing end of a pipe. Only one goroutine at a time may write; the other
// methods may be called from other goroutines.
type PipeWriter struct {
	end  *pipeEnd
	ring pipeInput
	room chan struct{} // has capacity 1; signals that the reader has made room
	// wants counts the requests of this end to be woken. The reader sends at most one byte per
	// request.
	wants atomic.Uint64
	gone  chan struct{} // closed when either end has closed
}

// OpenPipeWriter opens the writing end of a pipe. The caller still closes f.
func OpenPipeWriter(f *os.File) (*PipeWriter, error) {
	e, ring, err := openPipe(f)
	if err != nil {
		return nil, err
	}
	return newPipeWriter(e, ring), nil
}

func newPipeWriter(e *pipeEnd, ring *pipeRing) *PipeWriter {
	w := &PipeWriter{end: e, ring: pipeInput{pipeRing: ring}, room: make(chan struct{}, 1), gone: make(chan struct{})}
	go w.watch() // ends when either end is closed
	return w
}

// watch receives wake-ups from the reader. A reader that sends more bytes than requested is treated
// as closed, because reading all bytes of an untrusted program would cost more processor time than
// writing them.
func (w *PipeWriter) watch() {
	defer close(w.gone)
	var wakeUps [64]byte
	for received := uint64(0); ; {
		n, err := w.end.conn.Read(wakeUps[:])
		if received += uint64(n); err != nil || received > w.wants.Load() {
			return
		}
		select {
		case w.room <- struct{}{}:
		default:
		}
	}
}

// Gone is closed when the reader has closed the pipe or ended.
func (w *PipeWriter) Gone() <-chan struct{} { return w.gone }

// Drained reports whether the reader has read everything, according to the shared memory.
func (w *PipeWriter) Drained() bool {
	defer runtime.KeepAlive(w)
	return w.ring.control.taken.Load() == w.ring.control.filled.Load()
}

// Write returns when all of p is in the pipe.
func (w *PipeWriter) Write(p []byte) (int, error) {
	one := [1][]byte{p}
	n, err := w.writeAll(one[:])
	return int(n), err
}

// writeAll writes the parts, and modifies the slice while doing so.
func (w *PipeWriter) writeAll(parts [][]byte) (written int64, err error) {
	for step := firstStep; len(parts) > 0; step = carrySize {
		b, err := w.awaitRoom()
		if err != nil {
			return written, err
		}
		n := 0
		for b = b[:min(len(b), step)]; len(parts) > 0 && n < len(b); {
			m := copy(b[n:], parts[0])
			n += m
			if parts[0] = parts[0][m:]; len(parts[0]) == 0 {
				parts = parts[1:]
			}
		}
		if n > 0 {
			w.publish(n)
			written += int64(n)
		}
	}
	return written, nil
}

// firstStep is the number of bytes of a long message that are published first, so that the reader
// wakes up while the writer copies further bytes.
const firstStep = carrySize / 4

// ReadFrom reads r until its end, directly into the shared memory.
func (w *PipeWriter) ReadFrom(r io.Reader) (read int64, err error) {
	defer runtime.KeepAlive(w)
	for {
		b, err := w.awaitRoom()
		if err != nil {
			return read, err
		}
		n, err := r.Read(b)
		if n > 0 {
			w.publish(n)
			read += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return read, nil
		case err != nil:
			return read, err
		}
	}
}

func (w *PipeWriter) publish(n int) {
	if w.ring.publish(n) {
		w.end.wakeReader()
	}
}

// awaitRoom waits until bytes can be written, and returns the memory for them.
func (w *PipeWriter) awaitRoom() ([]byte, error) {
	for {
		select {
		case <-w.gone:
			return nil, fmt.Errorf("channel: write to a pipe: %w", net.ErrClosed)
		default:
		}
		b, err := w.ring.room()
		if err != nil || len(b) > 0 {
			return b, err
		}
		w.wants.Add(1)
		w.ring.want()
		if b, err = w.ring.room(); err != nil || len(b) > 0 {
			return b, err
		}
		select {
		case <-w.room:
		case <-w.gone:
		}
	}
}

// CloseWrite tells the reader that no more bytes follow.
func (w *PipeWriter) CloseWrite() error { return w.end.conn.CloseWrite() }

// Close tells the reader that no more bytes follow. When it returns, only a concurrent write may
// still be running at this end. That write ends soon.
func (w *PipeWriter) Close() error {
	err := w.end.close()
	<-w.gone
	return err
}
