package launch

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// bridged returns both ends of a channel that a bridge carries over three
// sockets, and a channel that is closed when the bridge has ended.
func bridged(ctx context.Context, t *testing.T) (in, out *net.UnixConn, done chan struct{}) {
	t.Helper()
	conn := func(f *os.File) *net.UnixConn {
		defer f.Close()
		c, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(patience))
		t.Cleanup(func() { c.Close() })
		return c.(*net.UnixConn)
	}
	src, inFile, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	dst, outFile, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	done = make(chan struct{})
	go func() {
		defer close(done)
		carry(ctx, dst, src)
	}()
	return conn(inFile), conn(outFile), done
}

func await1(t *testing.T, done chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("the bridge does not end")
	}
}

func TestBridgeCarriesEverythingBeforeTheEnd(t *testing.T) {
	in, out, done := bridged(t.Context(), t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	go func() {
		in.Write(sent)
		in.Close()
	}()
	got, err := io.ReadAll(out)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d of %d bytes came, %v", len(got), len(sent), err)
	}
	select {
	case <-done:
		t.Error("the bridge ended before its receiver did")
	default:
	}
	out.Close()
	await1(t, done)
}

func TestSenderLearnsThatTheReceiverIsGone(t *testing.T) {
	in, out, done := bridged(t.Context(), t)
	out.Close()
	await1(t, done)
	if _, err := in.Write([]byte("x")); err == nil {
		t.Error("a channel without a receiver took a byte")
	}
}

func TestR5BridgeBreaksWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, out, done := bridged(ctx, t)
	cancel()
	await1(t, done)
	if _, err := in.Write([]byte("x")); err == nil {
		t.Error("a broken channel took a byte")
	}
	if _, err := out.Read(make([]byte, 1)); err == nil {
		t.Error("a byte came out of a broken channel")
	}
}

func TestNothingComesBackOnAChannel(t *testing.T) {
	_, out, done := bridged(t.Context(), t)
	out.Write([]byte("x"))
	await1(t, done)
}
