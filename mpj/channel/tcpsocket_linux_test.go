//go:build !386 && !s390x

package channel

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"
)

// tcpSockets returns the two ends of a connection.
func tcpSockets(t *testing.T) (a, b *tcpSocket) {
	t.Helper()
	x, y := dialed(t)
	a, b = owned(t, x).(*tcpSocket), owned(t, y).(*tcpSocket)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// late is a delay after which a waiting goroutine is at its gate. The system's timers have a
// resolution of up to 10 ms.
const late = 30 * time.Millisecond

func TestTCPSocketSendsMoreThanTheSystemBuffers(t *testing.T) {
	a, b := tcpSockets(t)
	want := bytes.Repeat([]byte("abc"), 8<<20)
	done := start(func() error {
		_, err := a.Write(want)
		return errors.Join(err, a.Close())
	})
	<-time.After(late)
	if got, err := io.ReadAll(b); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d of %d bytes, %v", len(got), len(want), err)
	}
	if err := ended(t, done); err != nil {
		t.Error(err)
	}
}

func TestTCPSocketSendsHeldBytesSoon(t *testing.T) {
	for writes := range 5 {
		a, b := tcpSockets(t)
		a.hold(writes)
		for i := range writes {
			a.Write([]byte{byte(i)})
		}
		got := make([]byte, writes)
		done := start(func() error {
			_, err := io.ReadFull(b, got)
			return err
		})
		if err := ended(t, done); err != nil {
			t.Errorf("%d writes: %v", writes, err)
		}
	}
}

func TestBlockedTCPReadEnds(t *testing.T) {
	tests := []struct {
		name string
		end  func(a, b *tcpSocket)
		want error
	}{
		{"the other side closes", func(_, b *tcpSocket) { b.Close() }, io.EOF},
		{"closed", func(a, _ *tcpSocket) { a.Close() }, nil},
		{"deadline", func(a, _ *tcpSocket) { a.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
	}
	for _, test := range tests {
		for _, when := range []time.Duration{0, late} { // in a blocking system call, at the gate
			t.Run(test.name+" after "+when.String(), func(t *testing.T) {
				a, b := tcpSockets(t)
				done := start(func() error {
					_, err := a.Read(make([]byte, 1))
					return err
				})
				<-time.After(when)
				test.end(a, b)
				if err := ended(t, done); err == nil || test.want != nil && !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
			})
		}
	}
}

func TestBlockedTCPWriteEnds(t *testing.T) {
	for name, end := range map[string]func(a, b *tcpSocket){
		"closed":                func(a, _ *tcpSocket) { a.Close() },
		"the other side closes": func(_, b *tcpSocket) { b.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := tcpSockets(t)
			done := start(func() error {
				_, err := a.Write(make([]byte, 32<<20))
				return err
			})
			<-time.After(late)
			end(a, b)
			if err := ended(t, done); err == nil {
				t.Error("a write succeeded although no process reads")
			}
		})
	}
}

func TestTCPSocketReadsAgainAfterADeadline(t *testing.T) {
	a, b := tcpSockets(t)
	buf := make([]byte, 8)
	for range 3 {
		a.SetReadDeadline(time.Unix(1, 0))
		if _, err := a.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		a.SetReadDeadline(time.Time{})
		done := start(func() error {
			_, err := io.ReadFull(a, buf)
			return err
		})
		<-time.After(late)
		b.Write(buf[:4])
		<-time.After(late)
		b.Write(buf[4:])
		if err := ended(t, done); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTCPSocketWaitingForItsEndIsNotPolled checks that a wait for the end of a connection uses no
// processor time.
func TestTCPSocketWaitingForItsEndIsNotPolled(t *testing.T) {
	a, b := tcpSockets(t)
	done := start(func() error { a.awaitEnd(); return nil })
	<-time.After(blockTime / 2)
	if n := blockedGoroutines.Load(); n != 0 {
		t.Errorf("%d goroutines poll", n)
	}
	b.Close()
	ended(t, done)
}

func TestWarmTCPSocketAllocatesNothing(t *testing.T) {
	a, b := tcpSockets(t)
	buf := make([]byte, 64)
	if n := testing.AllocsPerRun(100, func() {
		a.Write(buf)
		io.ReadFull(b, buf)
	}); n > 0 {
		t.Errorf("%v allocations a message", n)
	}
}
