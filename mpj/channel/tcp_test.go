package channel

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

func init() {
	kinds["tcp"] = func(t testing.TB) (Sender, Receiver) {
		a, b := dialed(t)
		return tcpPair(t, a, b)
	}
}

// dialed returns the two ends of a TCP connection.
func dialed(t testing.TB) (a, b net.Conn) {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	a = must(net.Dial("tcp", l.Addr().String()))(t)
	b = must(l.Accept())(t)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// owned returns conn as a process receives it from its peer.
func owned(t testing.TB, conn net.Conn) net.Conn {
	t.Helper()
	f := must(conn.(*net.TCPConn).File())(t)
	defer f.Close()
	conn.Close()
	return must(OpenTCP(f))(t)
}

// tcpPair returns the two ends of a channel between two processes that have each other's keys.
func tcpPair(t testing.TB, a, b net.Conn) (Sender, Receiver) {
	t.Helper()
	return tcpPairOver(t, a, b, func(func()) {})
}

// tcpPairOver is like tcpPair, with a link between a and b that carry starts. The argument of carry
// is a function that interrupts the receiver once the receiver has begun.
func tcpPairOver(t testing.TB, a, b net.Conn, carry func(interrupt func())) (Sender, Receiver) {
	t.Helper()
	from, to := must(NewIdentity())(t), must(NewIdentity())(t)
	a, b = owned(t, a), owned(t, b)
	r := OpenTCPReceiver(b, to, from.Key())
	var begun atomic.Bool
	carry(func() {
		if begun.Load() {
			r.(*tcpReceiver).Interrupt()
		}
	})
	defer begun.Store(true)
	proved := make(chan error, 1)
	go func() { proved <- r.(*tcpReceiver).handshake() }()
	s := must(OpenTCPSender(context.Background(), a, from, to.Key()))(t)
	if err := <-proved; err != nil {
		t.Fatal(err)
	}
	return s, r
}

func TestTCPAcceptsOnlyTheExpectedProcesses(t *testing.T) {
	from, to, stranger := must(NewIdentity())(t), must(NewIdentity())(t), must(NewIdentity())(t)
	cases := map[string]struct {
		sender, receiver     *Identity
		expected, expectedBy []byte // key of the receiver, key of the sender
		sends                bool
	}{
		"both are right":           {from, to, to.Key(), from.Key(), true},
		"another receiver":         {from, stranger, to.Key(), from.Key(), false},
		"another sender":           {stranger, to, to.Key(), from.Key(), false},
		"a sender without a key":   {from, to, to.Key(), nil, false},
		"a receiver without a key": {from, to, nil, from.Key(), false},
		"the sender as receiver":   {from, from, to.Key(), from.Key(), false},
		"half the receiver's key":  {from, to, to.Key()[:16], from.Key(), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := dialed(t)
			a, b = owned(t, a), owned(t, b)
			r := OpenTCPReceiver(b, c.receiver, c.expectedBy)
			defer r.Close()
			received := make(chan error, 1)
			go func() {
				_, err := r.Receive(fresh)
				received <- err
			}()
			s, err := OpenTCPSender(t.Context(), a, c.sender, c.expected)
			if err == nil {
				defer s.Close()
				s.Send(numbered(1, []byte("secret")))
			}
			if err := <-received; (err == nil) != c.sends {
				t.Errorf("the receiver returned %v", err)
			}
			if err == nil && !c.sends {
				<-s.Broken() // the sender gets the error, perhaps later
			}
		})
	}
}

func TestTCPReceiverSurvivesNoise(t *testing.T) {
	for name, noise := range map[string][]byte{
		"no bytes":            nil,
		"text":                []byte("GET / HTTP/1.1\r\n\r\n"),
		"frame":               frame.AppendHeader(nil, frame.Header{Kind: frame.Data}),
		"truncated handshake": {22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3},
		"long record":         {22, 3, 1, 0xff, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := dialed(t)
			r := OpenTCPReceiver(b, must(NewIdentity())(t), make([]byte, KeySize))
			a.Write(noise)
			a.Close()
			if f, err := r.Receive(fresh); err == nil {
				t.Errorf("noise was received as the frame %+v", f)
			}
			if _, err := b.Write([]byte{1}); err == nil {
				t.Error("the connection is still open")
			}
		})
	}
}

func TestTCPBreaksAtBothEnds(t *testing.T) {
	a, far := dialed(t)
	near, b := dialed(t)
	var copying sync.WaitGroup
	copying.Go(func() { io.Copy(near, far) })
	copying.Go(func() { io.Copy(far, near) })
	s, r := tcpPair(t, a, b)
	defer s.Close()
	defer r.Close()
	if err := s.Send(numbered(1, make([]byte, 100))); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Receive(fresh); err != nil {
		t.Fatal(err)
	}
	far.Close()
	near.Close()
	<-s.Broken()
	if f, err := r.Receive(fresh); err == nil {
		t.Errorf("the frame %+v was received after the cut", f)
	}
	copying.Wait()
}

// TestTCPInterruptedAnywhereLosesNothing interrupts Receive at any byte of a record, and checks
// that no data is lost.
func TestTCPInterruptedAnywhereLosesNothing(t *testing.T) {
	a, far := dialed(t)
	near, b := dialed(t)
	var copying sync.WaitGroup
	copying.Go(func() { io.Copy(far, near) })
	s, r := tcpPairOver(t, a, b, func(interrupt func()) {
		copying.Go(func() { // byte by byte
			buffer := make([]byte, 1)
			for {
				if _, err := far.Read(buffer); err != nil {
					return
				}
				interrupt()
				near.Write(buffer)
			}
		})
	})
	const frames = 50
	copying.Go(func() {
		for i := range frames {
			s.Send(numbered(i, bytes.Repeat([]byte{byte(i)}, 3*i)))
		}
	})
	for i := 0; i < frames; {
		f, err := r.Receive(fresh)
		switch {
		case errors.Is(err, ErrInterrupted):
		case err != nil || f.Seq != uint64(i) || !bytes.Equal(f.Payload, bytes.Repeat([]byte{byte(i)}, 3*i)):
			t.Fatalf("got %+v, %v; want frame %d", f, err, i)
		default:
			i++
		}
	}
	s.Close()
	r.Close()
	far.Close()
	near.Close()
	copying.Wait()
}

// TestTCPDetectsForgery checks that data with a flipped bit is not delivered.
func TestTCPDetectsForgery(t *testing.T) {
	a, far := dialed(t)
	near, b := dialed(t)
	var forge sync.Mutex
	forging := false
	var copying sync.WaitGroup
	copying.Go(func() { io.Copy(far, near) })
	copying.Go(func() {
		buffer := make([]byte, 1<<16)
		for {
			n, err := far.Read(buffer)
			if err != nil {
				return
			}
			forge.Lock()
			if forging {
				buffer[n-1] ^= 1
			}
			forge.Unlock()
			near.Write(buffer[:n])
		}
	})
	s, r := tcpPair(t, a, b)
	forge.Lock()
	forging = true
	forge.Unlock()
	s.Send(numbered(1, bytes.Repeat([]byte{7}, 100)))
	if f, err := r.Receive(fresh); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a forged frame was received as %+v, %v", f, err)
	}
	r.Close()
	s.Close()
	far.Close()
	near.Close()
	copying.Wait()
}

// BenchmarkTCP compares a channel with the TLS connection below it, with a ping-pong on each.
func BenchmarkTCP(b *testing.B) {
	for _, size := range []int{1, 1 << 20} {
		b.Run("pingpong/channel/"+sizeName(size), func(b *testing.B) { pingPong(b, size, channelEnds(b, size)) })
		b.Run("pingpong/tls/"+sizeName(size), func(b *testing.B) { pingPong(b, size, tlsEnds(b, size)) })
	}
}

// ends holds the functions of the two sides of a ping-pong.
type ends struct{ send, receive [2]func() error }

func pingPong(b *testing.B, size int, e ends) {
	b.ReportAllocs()
	b.SetBytes(2 * int64(size))
	var pong sync.WaitGroup
	b.ResetTimer()
	pong.Go(func() {
		for range b.N {
			e.receive[1]()
			e.send[1]()
		}
	})
	for range b.N {
		if err := errors.Join(e.send[0](), e.receive[0]()); err != nil {
			b.Error(err)
			break
		}
	}
	pong.Wait()
}

func channelEnds(b *testing.B, size int) (e ends) {
	for i := range 2 {
		x, y := dialed(b)
		s, r := tcpPair(b, x, y)
		b.Cleanup(func() { s.Close(); r.Close() })
		f, into := []frame.Frame{numbered(1, make([]byte, size))}, make([]byte, size)
		place := func(frame.Header) []byte { return into }
		e.send[i] = func() error { return s.Send(f...) }
		e.receive[1-i] = func() error { _, err := r.Receive(place); return err }
	}
	return e
}

func tlsEnds(b *testing.B, size int) (e ends) {
	x, y := dialed(b)
	from, to := must(NewIdentity())(b), must(NewIdentity())(b)
	conns := []*tls.Conn{tls.Client(x, from.config(to.Key())), tls.Server(y, to.config(from.Key()))}
	var proving sync.WaitGroup
	proving.Go(func() { conns[1].Handshake() })
	if err := conns[0].Handshake(); err != nil {
		b.Fatal(err)
	}
	proving.Wait()
	for i, c := range conns {
		out, in := make([]byte, size), make([]byte, size)
		e.send[i] = func() error { _, err := c.Write(out); return err }
		e.receive[i] = func() error { _, err := io.ReadFull(c, in); return err }
	}
	return e
}
