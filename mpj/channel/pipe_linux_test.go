package channel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

func init() {
	for name, polling := range map[string]bool{"pipe": false, "pipe, polling": true} {
		kinds[name] = func(t testing.TB) (Sender, Receiver) {
			w, r := pipe(t, polling)
			return NewPipeSender(w), NewStreamReceiver(r)
		}
	}
}

// pipe returns both ends of a pipe. A polling reader is a process; any other is a peer.
func pipe(t testing.TB, polling bool) (*PipeWriter, *PipeReader) {
	t.Helper()
	in, out, err := NewPipe(!polling)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	w := must(OpenPipeWriter(in))(t)
	r := must(OpenPipeReader(out, polling))(t)
	t.Cleanup(func() { w.Close(); r.Close() })
	return w, r
}

// ended returns the error received on done, which must arrive in time.
func ended(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("the call does not return")
		return nil
	}
}

func start(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

// TestPipeLosesNoByteAndNoWakeUp makes both sides sleep repeatedly, at random. If a side misses a
// wake-up, the test hangs.
func TestPipeLosesNoByteAndNoWakeUp(t *testing.T) {
	const total = 8 << 20
	for _, polling := range []bool{false, true} {
		w, r := pipe(t, polling)
		sent := make([]byte, total)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rand.NewChaCha8([32]byte(binary.LittleEndian.AppendUint64(make([]byte, 24), seed))).Read(sent)
		written := start(func() error {
			random := rand.New(rand.NewPCG(seed, 1))
			for left := sent; len(left) > 0; {
				n := min(len(left), 1+random.IntN(1<<random.IntN(21)))
				if _, err := w.Write(left[:n]); err != nil {
					return err
				}
				left = left[n:]
			}
			return w.CloseWrite()
		})
		random, got := rand.New(rand.NewPCG(seed, 2)), make([]byte, 0, total+1)
		var err error
		for n := 0; err == nil; got = got[:len(got)+n] {
			room := got[len(got):cap(got)]
			n, err = r.Read(room[:min(len(room), 1+random.IntN(1<<random.IntN(21)))])
		}
		if !errors.Is(err, io.EOF) || !bytes.Equal(got, sent) {
			t.Errorf("polling %v: %d of %d bytes, %v", polling, len(got), len(sent), err)
		}
		if err := ended(t, written); err != nil {
			t.Error(err)
		}
		if !w.Drained() {
			t.Error("the writer does not detect that all bytes were read")
		}
	}
}

func TestPipeImplementsReaderFromAndWriterTo(t *testing.T) {
	a, b := pipe(t, false)
	c, d := pipe(t, true)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<17)
	var carried sync.WaitGroup
	defer carried.Wait()
	carried.Go(func() {
		io.Copy(a, bytes.NewReader(sent)) // ReadFrom
		a.CloseWrite()
	})
	carried.Go(func() {
		io.Copy(c, b) // WriteTo
		c.CloseWrite()
	})
	if got, err := io.ReadAll(d); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d of %d bytes, %v", len(got), len(sent), err)
	}
}

func TestBlockedPipeReadEnds(t *testing.T) {
	tests := []struct {
		name string
		end  func(*PipeWriter, *PipeReader)
		want error
	}{
		{"the writer closes", func(w *PipeWriter, _ *PipeReader) { w.Close() }, io.EOF},
		{"the writer ends the pipe", func(w *PipeWriter, _ *PipeReader) { w.CloseWrite() }, io.EOF},
		{"closed", func(_ *PipeWriter, r *PipeReader) { r.Close() }, net.ErrClosed},
		{"deadline", func(_ *PipeWriter, r *PipeReader) { r.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
	}
	for _, test := range tests {
		for when, polling := range map[time.Duration]bool{0: true, 3 * lookTime: true, 2 * lookTime: false} { // while the reader polls, while it sleeps
			t.Run(test.name+" after "+when.String(), func(t *testing.T) {
				w, r := pipe(t, polling)
				done := start(func() error {
					_, err := r.Read(make([]byte, 1))
					return err
				})
				<-time.After(when)
				test.end(w, r)
				if err := ended(t, done); !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
			})
		}
	}
}

func TestPipeReaderReadsAgainAfterADeadline(t *testing.T) {
	w, r := pipe(t, true)
	for i := range 3 {
		r.SetReadDeadline(time.Unix(1, 0))
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		r.SetReadDeadline(time.Time{})
		w.Write([]byte{byte(i)})
		var b [1]byte
		if _, err := r.Read(b[:]); err != nil || b[0] != byte(i) {
			t.Fatalf("got %d, %v; want %d", b[0], err, i)
		}
	}
}

func TestBlockedPipeWriteEnds(t *testing.T) {
	for name, end := range map[string]func(*PipeWriter, *PipeReader){
		"the reader closes": func(_ *PipeWriter, r *PipeReader) { r.Close() },
		"closed":            func(w *PipeWriter, _ *PipeReader) { w.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			w, r := pipe(t, false)
			done := start(func() error {
				_, err := w.Write(make([]byte, 2*pipeCapacity))
				return err
			})
			for w.ring.control.writerWants.Load() == 0 {
				runtime.Gosched() // let the writer fill the pipe
			}
			end(w, r)
			if err := ended(t, done); !errors.Is(err, net.ErrClosed) {
				t.Errorf("got %v, want closed", err)
			}
			if w.Drained() {
				t.Error("the writer reports unread bytes as read")
			}
		})
	}
}

func TestWarmPipeAllocatesNothing(t *testing.T) {
	w, r := pipe(t, false)
	s := NewPipeSender(w)
	f, buf := numbered(1, make([]byte, 40)), make([]byte, 40+frame.HeaderSize)
	if n := testing.AllocsPerRun(100, func() {
		s.Send(f)
		io.ReadFull(r, buf)
	}); n > 0 {
		t.Errorf("%v allocations a message", n)
	}
}

// TestPipeReaderToleratesSpuriousWakeUps checks that a process that a peer floods with wake-ups
// still reads correctly.
func TestPipeReaderToleratesSpuriousWakeUps(t *testing.T) {
	w, r := pipe(t, true)
	done := start(func() error {
		_, err := r.Read(make([]byte, 1))
		return err
	})
	for range 100_000 {
		w.end.wake()
	}
	select {
	case err := <-done:
		t.Fatalf("read of an empty pipe: %v", err)
	default:
	}
	w.Write([]byte("x"))
	if err := ended(t, done); err != nil {
		t.Error(err)
	}
}

// TestPipeEndsWhenTheOtherSideBreaksItsProtocol checks that a pipe ends when the other side violates
// the protocol, so that a program cannot waste its peer's processor time.
func TestPipeEndsWhenTheOtherSideBreaksItsProtocol(t *testing.T) {
	t.Run("bytes to a reader with a bell", func(t *testing.T) {
		w, r := pipe(t, false)
		read := start(func() error { _, err := r.Read(make([]byte, 1)); return err })
		w.end.wake()
		if err := ended(t, read); !errors.Is(err, errProtocol) {
			t.Error(err)
		}
	})
	t.Run("rings without bytes", func(t *testing.T) {
		w, r := pipe(t, false)
		read := start(func() error { _, err := r.Read(make([]byte, 1)); return err })
		for {
			w.end.wakeReader()
			select {
			case err := <-read:
				if !errors.Is(err, errProtocol) {
					t.Error(err)
				}
				return
			case <-t.Context().Done():
				return
			default:
			}
		}
	})
	t.Run("bytes to a writer that has not asked to be woken", func(t *testing.T) {
		w, r := pipe(t, true)
		r.end.wake()
		select {
		case <-w.Gone():
		case <-time.After(10 * time.Second):
			t.Error("the reader continues")
		}
	})
}

// TestPipeReaderPausesAfterTooManyWakeUps checks the bound on the cost of wake-ups for single
// bytes.
func TestPipeReaderPausesAfterTooManyWakeUps(t *testing.T) {
	r := &PipeReader{since: time.Now()}
	begun := time.Now()
	for range 5 * wakesAtOnce {
		r.pace()
	}
	if took := time.Since(begun); took < 5*wakeTime {
		t.Errorf("%d wake-ups took %v", 5*wakesAtOnce, took)
	}
}

func TestPipeRefusesInvalidMemory(t *testing.T) {
	memory := must(newMemory("odd", controlSize+minRing+cacheLine))(t)
	defer memory.Close()
	unsealed := must(os.CreateTemp(t.TempDir(), ""))(t)
	defer unsealed.Close()
	unsealed.Truncate(controlSize + minRing)
	for name, test := range map[string]struct {
		rights   []byte
		mentions string
	}{
		"no memory":                {nil, "no shared memory attached"},
		"memory that could shrink": {syscall.UnixRights(int(unsealed.Fd())), "seals"},
		"memory of an odd length":  {syscall.UnixRights(int(memory.Fd())), "power of two"},
	} {
		t.Run(name, func(t *testing.T) {
			fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			file := os.NewFile(uintptr(fds[0]), "pipe")
			defer file.Close()
			defer syscall.Close(fds[1])
			if err := syscall.Sendmsg(fds[1], []byte{0}, test.rights, nil, 0); err != nil {
				t.Fatal(err)
			}
			if _, err := OpenPipeReader(file, false); err == nil || !strings.Contains(err.Error(), test.mentions) {
				t.Errorf("got %v, want an error that mentions %q", err, test.mentions)
			}
		})
	}
}

// FuzzPipe checks that no data written into the memory by the other side makes an end panic or
// access other memory.
func FuzzPipe(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 2, 0, 0, 0})
	f.Add([]byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0})
	f.Add([]byte{0, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0x80, 0, 0, 1, 0})
	f.Fuzz(func(t *testing.T, program []byte) {
		words := make([]uint64, (controlSize+minRing)/8)
		shared := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
		ring := must(newPipeRing(&memory{shared}))(t)
		in, out := pipeInput{pipeRing: ring}, pipeOutput{pipeRing: ring}
		playHostile(program, shared, func(word uint32) {
			n := int(word >> 1 & 0xffff)
			if b, err := in.room(); err == nil {
				b = b[:min(len(b), n)]
				for i := range b {
					b[i]++
				}
				in.publish(len(b))
				in.want()
			}
			if b, err := out.peek(int(word >> 17)); err == nil {
				out.release(len(b))
				out.doze()
			}
		})
	})
}

func TestPipeCorruptionIsAnError(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*pipeControl)
		use   func(*PipeWriter, *PipeReader) error
	}{
		"filled exceeds the capacity": {
			func(c *pipeControl) { c.filled.Store(pipeCapacity + 1) },
			func(_ *PipeWriter, r *PipeReader) error { _, err := r.Read(make([]byte, 1)); return err },
		},
		"filled decreases": {
			func(c *pipeControl) { c.filled.Store(1<<64 - 1) },
			func(_ *PipeWriter, r *PipeReader) error { _, err := r.WriteTo(io.Discard); return err },
		},
		"taken exceeds filled": {
			func(c *pipeControl) { c.taken.Store(1) },
			func(w *PipeWriter, _ *PipeReader) error { _, err := w.Write([]byte("x")); return err },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := pipe(t, false)
			test.spoil(w.ring.control)
			if err := test.use(w, r); err == nil || !strings.Contains(err.Error(), "corrupt") {
				t.Errorf("with corrupt counters, the pipe returned %v", err)
			}
		})
	}
}
