package switchboard

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// bridged returns both ends of a bridged channel, as processes have them, and a channel that is closed when
// the bridge has ended.
func bridged(ctx context.Context, t *testing.T) (in *channel.PipeWriter, out *channel.PipeReader, done chan struct{}) {
	t.Helper()
	src, inFile, err := openIn()
	if err != nil {
		t.Fatal(err)
	}
	defer inFile.Close()
	dst, outFile, err := openOut()
	if err != nil {
		t.Fatal(err)
	}
	defer outFile.Close()
	if in, err = channel.OpenPipeWriter(inFile); err != nil {
		t.Fatal(err)
	}
	if out, err = channel.OpenPipeReader(outFile, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); out.Close() })
	done = make(chan struct{})
	go func() {
		defer close(done)
		carry(ctx, dst, src)
	}()
	return in, out, done
}

func await1(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(eventTimeout):
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
		t.Errorf("%d of %d bytes arrived, %v", len(got), len(sent), err)
	}
	select {
	case <-done:
		t.Error("the bridge ended before its receiver did")
	default:
	}
	out.Close()
	await1(t, done)
}

func TestSenderLearnsThatTheReceiverHasEnded(t *testing.T) {
	in, out, done := bridged(t.Context(), t)
	out.Close()
	await1(t, done)
	await1(t, in.Gone())
	if _, err := in.Write([]byte("x")); err == nil {
		t.Error("a channel without a receiver took a byte")
	}
}

func TestR5BridgeBreaksWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, out, done := bridged(ctx, t)
	cancel()
	await1(t, done)
	await1(t, in.Gone())
	if _, err := in.Write([]byte("x")); err == nil {
		t.Error("a broken channel took a byte")
	}
	if _, err := out.Read(make([]byte, 1)); err == nil {
		t.Error("read a byte from a broken channel")
	}
}

func TestUnreadFramesOfABridgeAreLost(t *testing.T) {
	in, out, done := bridged(t.Context(), t)
	sent := make([]byte, 1000)
	in.Write(sent)
	in.CloseWrite()
	if _, err := out.Read(sent[:1]); err != nil {
		t.Fatal(err)
	}
	out.Close()
	await1(t, done)
	await1(t, in.Gone())
}
