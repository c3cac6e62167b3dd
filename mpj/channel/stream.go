package channel

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// FromFile returns a connection for a connected socket. It uses a duplicate of the descriptor, so
// the caller still closes f.
func FromFile(f *os.File) (net.Conn, error) {
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("channel from descriptor: %w", err)
	}
	return conn, nil
}

// NewStreamSender returns the writing end of a channel over conn, and takes ownership of conn. It
// writes all frames of one Send in as few writes as the system allows, without copying payloads.
func NewStreamSender(conn io.ReadWriteCloser) Sender {
	s := &streamSender{conn: conn, broken: make(chan struct{})}
	go s.watch(conn) // ends when conn is closed, at either end
	return s
}

// NewPipeSender returns the writing end of a channel over a pipe, and takes ownership of the pipe.
func NewPipeSender(w *PipeWriter) Sender { return &streamSender{conn: w, broken: w.gone} }

// A Source is the part of a connection that a receiver uses.
type Source interface {
	io.ReadCloser
	SetReadDeadline(time.Time) error
}

// NewStreamReceiver returns the reading end of a channel over conn, and takes ownership of conn. It
// reads payloads that are longer than its small buffer directly into their destination.
func NewStreamReceiver(conn Source) Receiver {
	return &streamReceiver{conn: conn, buffer: make([]byte, streamBuffer)}
}

// maxBatch bounds the frames in one vectored write. Each frame has two parts, and the system accepts
// 1024 parts.
const maxBatch = 512

type streamSender struct {
	conn    io.WriteCloser
	broken  chan struct{}
	headers []byte
	parts   [][]byte
	vector  net.Buffers // unwritten rest of parts; a field, so that a call does not allocate it
}

func (s *streamSender) Send(frames ...frame.Frame) error {
	for len(frames) > 0 {
		n := min(len(frames), maxBatch)
		if err := s.write(frames[:n]); err != nil {
			return err
		}
		frames = frames[n:]
	}
	return nil
}

func (s *streamSender) write(frames []frame.Frame) error {
	if need := len(frames) * frame.HeaderSize; cap(s.headers) < need {
		s.headers = make([]byte, 0, need)
	}
	s.headers, s.parts = s.headers[:0], s.parts[:0]
	for _, f := range frames {
		if uint64(len(f.Payload)) != f.Size || f.Size > frame.MaxPayload {
			return fmt.Errorf("channel: frame with a payload of %d bytes has size %d, at most %d are allowed", len(f.Payload), f.Size, uint64(frame.MaxPayload))
		}
		start := len(s.headers)
		s.headers = frame.AppendHeader(s.headers, f.Header)
		s.parts = append(s.parts, s.headers[start:])
		if f.Size > 0 {
			s.parts = append(s.parts, f.Payload)
		}
	}
	err := s.writeParts()
	clear(s.parts) // releases the payloads
	return err
}

func (s *streamSender) writeParts() (err error) {
	if pipe, ok := s.conn.(*PipeWriter); ok {
		_, err = pipe.writeAll(s.parts)
		return err
	}
	s.vector = s.parts
	_, err = s.vector.WriteTo(s.conn)
	return err
}

// watch waits for the end of conn. The receiver never sends data.
func (s *streamSender) watch(conn io.Reader) {
	defer close(s.broken)
	conn.Read(make([]byte, 1))
}

func (s *streamSender) Broken() <-chan struct{} { return s.broken }

func (s *streamSender) Close() error {
	err := s.conn.Close()
	<-s.broken
	return err
}

const streamBuffer = 16 << 10

type streamReceiver struct {
	conn        Source
	buffer      []byte
	unread      []byte // bytes in buffer that have not been taken yet
	interrupted atomic.Bool
}

// ErrInterrupted is the error of a Receive that was ended by Interrupt.
var ErrInterrupted = errors.New("channel: interrupted")

// Interrupt makes a Receive that waits for a frame, or otherwise the next Receive, return
// ErrInterrupted. No data is lost: a frame that has begun is received first.
func (r *streamReceiver) Interrupt() {
	r.interrupted.Store(true)
	r.conn.SetReadDeadline(time.Unix(1, 0))
}

// again reports whether a read that failed with err must be repeated.
func (r *streamReceiver) again(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	r.conn.SetReadDeadline(time.Time{})
	return true
}

func (r *streamReceiver) Receive(alloc func(frame.Header) []byte) (frame.Frame, error) {
	for len(r.unread) < frame.HeaderSize {
		err := r.fill()
		switch {
		case err == nil:
		case !r.again(err):
			return frame.Frame{}, err
		case r.interrupted.Swap(false):
			return frame.Frame{}, ErrInterrupted
		}
	}
	h, err := frame.ParseHeader(r.unread[:frame.HeaderSize])
	if err != nil {
		return frame.Frame{}, err
	}
	r.unread = r.unread[frame.HeaderSize:]
	payload := alloc(h)
	n := copy(payload, r.unread)
	r.unread = r.unread[n:]
	for n < len(payload) {
		m, err := io.ReadFull(r.conn, payload[n:])
		if n += m; err != nil && !r.again(err) {
			return frame.Frame{}, cut(err)
		}
	}
	return frame.Frame{Header: h, Payload: payload}, nil
}

// fill reads more bytes after the unread bytes.
func (r *streamReceiver) fill() error {
	n := copy(r.buffer, r.unread)
	m, err := r.conn.Read(r.buffer[n:])
	r.unread = r.buffer[:n+m]
	if err == nil || m > 0 {
		return nil
	}
	if n > 0 {
		return cut(err)
	}
	return err
}

// cut returns an error for an end of the stream within a frame.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *streamReceiver) Close() error { return r.conn.Close() }
