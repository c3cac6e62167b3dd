package channel

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// handshakeTimeout bounds the TLS handshake, in which both ends prove their keys.
const handshakeTimeout = 5 * time.Second

// recordSize is the longest plaintext of a TLS record, in bytes (RFC 8446, section 5.1).
const recordSize = 16 << 10

// OpenTCPSender returns the writing end of a channel over a TCP connection, after both sides have
// proved their keys. It takes ownership of conn. self is the key pair of this process, and other
// the public key of the receiving process.
func OpenTCPSender(ctx context.Context, conn net.Conn, self *Identity, other []byte) (Sender, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	secure := tls.Client(conn, self.config(other))
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("channel: agree on keys: %w", err)
	}
	s := &tcpSender{raw: conn, conn: secure, broken: make(chan struct{})}
	go s.watch() // ends when conn is closed, at either end
	return s, nil
}

// OpenTCPReceiver returns the reading end of a channel over a TCP connection, and takes ownership
// of conn. In the first Receive both sides prove their keys. self is the key pair of this process,
// and other the public key of the sending process.
func OpenTCPReceiver(conn net.Conn, self *Identity, other []byte) Receiver {
	secure := tls.Server(conn, self.config(other))
	return &tcpReceiver{
		conn: conn, secure: secure,
		stream: &streamReceiver{conn: secure, buffer: make([]byte, recordSize)},
	}
}

// A tcpSender writes TLS records. It collects headers and payloads in a record, and writes the
// record when it is full and at the end of each Send. The part of a payload that does not fit is
// written directly, without a copy to the record.
//
// Neither end sends a TLS close_notify, which could block. TCP reports that the other side has
// closed or that the connection broke. An attacker who can forge these events can also cut the
// connection, and the protocols of package protection handle both.
type tcpSender struct {
	raw    net.Conn
	conn   *tls.Conn
	record []byte // collected frames, at most recordSize bytes
	closed atomic.Bool
	broken chan struct{}
}

func (s *tcpSender) Send(frames ...frame.Frame) error {
	s.record = s.record[:0]
	for _, f := range frames {
		if uint64(len(f.Payload)) != f.Size || f.Size > frame.MaxPayload {
			return fmt.Errorf("channel: frame with a payload of %d bytes has size %d, at most %d are allowed", len(f.Payload), f.Size, uint64(frame.MaxPayload))
		}
		if err := s.append(f); err != nil {
			return err
		}
	}
	return s.flush()
}

// append adds f to the record, and writes the part that does not fit.
func (s *tcpSender) append(f frame.Frame) error {
	if s.record == nil {
		s.record = make([]byte, 0, recordSize)
	}
	if len(s.record)+frame.HeaderSize > recordSize {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.record = frame.AppendHeader(s.record, f.Header)
	n := min(len(f.Payload), recordSize-len(s.record))
	s.record = append(s.record, f.Payload[:n]...)
	if n == len(f.Payload) {
		return nil
	}
	if err := s.flush(); err != nil {
		return err
	}
	rest := f.Payload[n:]
	if h, ok := s.raw.(holder); ok {
		h.hold((len(rest) + recordSize - 1) / recordSize)
	}
	_, err := s.conn.Write(rest)
	return err
}

// A holder is a connection that may delay some of the given number of next writes, to combine each
// with the write that follows.
type holder interface{ hold(writes int) }

func (s *tcpSender) flush() error {
	if len(s.record) == 0 {
		return nil
	}
	_, err := s.conn.Write(s.record)
	s.record = s.record[:0]
	return err
}

// watch waits for the end of the connection. The receiver never sends data.
func (s *tcpSender) watch() {
	defer close(s.broken)
	if c, ok := s.raw.(interface{ awaitEnd() }); ok {
		c.awaitEnd()
		return
	}
	s.raw.Read(make([]byte, 1))
}

func (s *tcpSender) Broken() <-chan struct{} { return s.broken }

func (s *tcpSender) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	err := s.raw.Close()
	<-s.broken
	return err
}

type tcpReceiver struct {
	conn   net.Conn
	secure *tls.Conn
	proved bool // both sides have proved their keys
	stream *streamReceiver
}

func (r *tcpReceiver) Receive(alloc func(frame.Header) []byte) (frame.Frame, error) {
	if !r.proved {
		if err := r.handshake(); err != nil {
			r.conn.Close()
			return frame.Frame{}, err
		}
	}
	return r.stream.Receive(alloc)
}

func (r *tcpReceiver) handshake() error {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	if err := r.secure.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("channel: agree on keys: %w", err)
	}
	r.proved = true
	return nil
}

// Interrupt interrupts the stream. The receiver must already have received a frame. A TLS connection
// whose read was stopped by a deadline can continue.
func (r *tcpReceiver) Interrupt() { r.stream.Interrupt() }

func (r *tcpReceiver) Close() error { return r.conn.Close() }
