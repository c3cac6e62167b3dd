package channel

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kinds contains the kinds of channels that the tests below use.
var kinds = map[string]func(testing.TB) (Sender, Receiver){
	"self":   func(testing.TB) (Sender, Receiver) { return Self() },
	"stream": streamPair,
}

func streamPair(t testing.TB) (Sender, Receiver) {
	a, b := connected(t)
	return NewStreamSender(a), NewStreamReceiver(b)
}

// connected returns the two ends of a socket pair.
func connected(t testing.TB) (a, b net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends := make([]net.Conn, 2)
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socketpair")
		ends[i], err = FromFile(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends[0], ends[1]
}

// eachKind runs a test over every kind of channel.
func eachKind(t *testing.T, test func(*testing.T, Sender, Receiver)) {
	for name, open := range kinds {
		t.Run(name, func(t *testing.T) {
			s, r := open(t)
			defer r.Close()
			defer s.Close()
			test(t, s, r)
		})
	}
}

func numbered(seq int, payload []byte) frame.Frame {
	return frame.Frame{Header: frame.Header{Kind: frame.Data, Context: 2, Seq: uint64(seq), Size: uint64(len(payload))}, Payload: payload}
}

func fresh(h frame.Header) []byte { return make([]byte, h.Size) }

func TestFramesArriveWholeAndInOrder(t *testing.T) {
	sizes := []int{0, 1, frame.HeaderSize, 1000, streamBuffer - frame.HeaderSize, streamBuffer, 3 << 20, 0, 7}
	eachKind(t, func(t *testing.T, s Sender, r Receiver) {
		var sent []frame.Frame
		for round := range 3 {
			for i, n := range sizes {
				sent = append(sent, numbered(len(sent), bytes.Repeat([]byte{byte(16*round + i)}, n)))
			}
		}
		var sending sync.WaitGroup
		sending.Go(func() {
			for i := 0; i < len(sent); i += 3 { // in batches of one to three
				n := 1 + i%3
				if err := errors.Join(s.Send(sent[i:i+n]...), s.Send(sent[i+n:i+3]...)); err != nil {
					t.Error(err)
				}
			}
			s.Close()
		})
		for i, want := range sent {
			got, err := r.Receive(fresh)
			if err != nil || got.Header != want.Header || !bytes.Equal(got.Payload, want.Payload) {
				t.Fatalf("frame %d: got %+v, %v; want %+v", i, got.Header, err, want.Header)
			}
		}
		if f, err := r.Receive(fresh); !errors.Is(err, io.EOF) {
			t.Errorf("after the last frame: got %+v, %v; want EOF", f.Header, err)
		}
		sending.Wait()
	})
}

func TestManyFramesInOneSend(t *testing.T) {
	eachKind(t, func(t *testing.T, s Sender, r Receiver) {
		frames := make([]frame.Frame, 2*maxBatch+3)
		for i := range frames {
			frames[i] = numbered(i, []byte{byte(i)})
		}
		var sending sync.WaitGroup
		sending.Go(func() {
			if err := s.Send(frames...); err != nil {
				t.Error(err)
			}
		})
		for i := range frames {
			if f, err := r.Receive(fresh); err != nil || f.Seq != uint64(i) || f.Payload[0] != byte(i) {
				t.Fatalf("got %+v, %v; want frame %d", f, err, i)
			}
		}
		sending.Wait()
	})
}

func TestPayloadMayBeReusedAfterSend(t *testing.T) {
	eachKind(t, func(t *testing.T, s Sender, r Receiver) {
		var sending sync.WaitGroup
		sending.Go(func() {
			b := []byte{0}
			for i := range 100 {
				b[0] = byte(i)
				if err := s.Send(numbered(i, b)); err != nil {
					t.Error(err)
				}
			}
		})
		for i := range 100 {
			if f, err := r.Receive(fresh); err != nil || f.Payload[0] != byte(i) {
				t.Fatalf("got %v, %v; want %d", f.Payload, err, i)
			}
		}
		sending.Wait()
	})
}

func TestCloseEndsABlockedCall(t *testing.T) {
	eachKind(t, func(t *testing.T, s Sender, r Receiver) {
		var blocked sync.WaitGroup
		blocked.Go(func() {
			if _, err := r.Receive(fresh); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("Receive on a closed channel: %v", err)
			}
		})
		r.Close()
		blocked.Wait()
		for range 100 { // a socket accepts some frames before the error
			if err := s.Send(numbered(1, make([]byte, 1<<16))); err != nil {
				return
			}
		}
		t.Error("Send to a closed receiver does not fail")
	})
}

func TestIdleSenderDetectsTheEndOfTheReceiver(t *testing.T) {
	eachKind(t, func(t *testing.T, s Sender, r Receiver) {
		select {
		case <-s.Broken():
			t.Error("an intact channel reports that it is broken")
		default:
		}
		r.Close()
		<-s.Broken()
	})
}

func TestWrongSizeIsRefused(t *testing.T) {
	eachKind(t, func(t *testing.T, s Sender, _ Receiver) {
		f := numbered(1, []byte("abc"))
		f.Size = 2
		if s.Send(f) == nil {
			t.Error("a frame with a wrong size was sent")
		}
	})
}

func TestStreamTruncatedWithinAFrame(t *testing.T) {
	whole := append(frame.AppendHeader(nil, frame.Header{Kind: frame.Data, Size: 5}), "hello"...)
	for _, n := range []int{1, frame.HeaderSize - 1, frame.HeaderSize, frame.HeaderSize + 4} {
		a, b := connected(t)
		a.Write(whole[:n])
		a.Close()
		if _, err := NewStreamReceiver(b).Receive(fresh); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("stream truncated after %d bytes: got %v, want an unexpected EOF", n, err)
		}
	}
}

func BenchmarkSend(b *testing.B) {
	for name, open := range kinds {
		for _, size := range []int{1, 1 << 20} {
			b.Run(name+"/"+sizeName(size), func(b *testing.B) {
				s, r := open(b)
				var receiving sync.WaitGroup
				into := make([]byte, size)
				receiving.Go(func() {
					for range b.N {
						r.Receive(func(frame.Header) []byte { return into })
					}
				})
				f := numbered(1, make([]byte, size))
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for range b.N {
					s.Send(f)
				}
				receiving.Wait()
			})
		}
	}
}

func sizeName(n int) string {
	if n == 1 {
		return "1B"
	}
	return "1MiB"
}
