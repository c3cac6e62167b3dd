package channel

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"
)

func sockets(t *testing.T) (a, b *Socket) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*Socket
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socketpair")
		if ends[i], err = OpenSocket(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends[0], ends[1]
}

// start runs f, which ends later than it would with attention only.
func start(f func() error) chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

func ended(t *testing.T, done chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
		return nil
	}
}

func TestSocketCarriesWhatDoesNotFitIntoTheSystem(t *testing.T) {
	a, b := sockets(t)
	parts := [][]byte{bytes.Repeat([]byte("ab"), 1<<20), nil, []byte("c"), bytes.Repeat([]byte("d"), 1<<20)}
	written := start(func() error {
		_, err := a.writeAll(parts)
		return errors.Join(err, a.CloseWrite())
	})
	<-time.After(3 * attention) // the writer is at its gate
	got, err := io.ReadAll(b)
	if want := bytes.Join(parts, nil); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d of %d bytes, %v", len(got), len(want), err)
	}
	if err := ended(t, written); err != nil {
		t.Error(err)
	}
}

func TestSocketThatWaitsEnds(t *testing.T) {
	tests := []struct {
		name string
		end  func(a, b *Socket)
		want error
	}{
		{"the other side closes", func(_, b *Socket) { b.Close() }, io.EOF},
		{"the other side says no more", func(_, b *Socket) { b.CloseWrite() }, io.EOF},
		{"closed", func(a, _ *Socket) { a.Close() }, nil},
		{"deadline", func(a, _ *Socket) { a.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
	}
	for _, test := range tests {
		for _, when := range []time.Duration{0, 3 * attention} { // in the system, at the gate
			t.Run(test.name+" after "+when.String(), func(t *testing.T) {
				a, b := sockets(t)
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

func TestSocketReadsOnAfterADeadline(t *testing.T) {
	a, b := sockets(t)
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
		<-time.After(2 * attention)
		b.Write(buf[:4])
		<-time.After(2 * attention)
		b.Write(buf[4:])
		if err := ended(t, done); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWarmSocketAllocatesNothing(t *testing.T) {
	a, b := sockets(t)
	buf, parts := make([]byte, 64), [][]byte{make([]byte, 24), make([]byte, 40)}
	if n := testing.AllocsPerRun(100, func() {
		a.writeAll(parts)
		io.ReadFull(b, buf)
	}); n > 0 {
		t.Errorf("%v allocations a message", n)
	}
}
