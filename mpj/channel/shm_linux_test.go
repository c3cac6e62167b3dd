package channel

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

func init() {
	kinds["shm"] = func(t testing.TB) (Sender, Receiver) { return shmPair(t, RingCapacity) }
	kinds["shm, small ring"] = func(t testing.TB) (Sender, Receiver) { return shmPair(t, minRing) }
}

// shmPair returns the two ends of a ring, each with a bell.
func shmPair(t testing.TB, capacity int) (*ShmSender, *ShmReceiver) {
	t.Helper()
	bells := testBells(t, 2)
	file := must(NewRing(capacity))(t)
	defer file.Close()
	s := must(OpenShmSender(file, bells[0], bells[1]))(t)
	r := must(OpenShmReceiver(file, bells[1], bells[0]))(t)
	return s, r
}

func testBells(t testing.TB, n int) []*Bell {
	t.Helper()
	file := must(NewBoard(n))(t)
	defer file.Close()
	return bellsOf(t, file, n)
}

func bellsOf(t testing.TB, file *os.File, n int) []*Bell {
	t.Helper()
	board := must(MapBoard(file))(t)
	defer board.Close()
	bells := make([]*Bell, n)
	for i := range bells {
		bells[i] = must(board.Bell(i))(t)
	}
	return bells
}

// must returns the result of a call that must succeed in this test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestShmAllocatesNothing(t *testing.T) {
	s, r := shmPair(t, RingCapacity)
	for _, size := range []int{1, inlineSize, inlineSize + 1, 1 << 16} {
		f, into := numbered(1, make([]byte, size)), make([]byte, size)
		place := func(frame.Header) []byte { return into }
		got := testing.AllocsPerRun(100, func() {
			if done, err := s.TrySend(f); !done || err != nil {
				t.Fatal(done, err)
			}
			if _, ok, err := r.TryReceive(place); !ok || err != nil {
				t.Fatal(ok, err)
			}
		})
		if got != 0 {
			t.Errorf("a frame of %d bytes costs %v allocations, want 0", size, got)
		}
	}
}

func TestShmEnds(t *testing.T) {
	whole, cut := numbered(1, make([]byte, 100)), numbered(2, make([]byte, 2*minRing))
	s, r := shmPair(t, minRing)
	s.TrySend(whole)
	s.TrySend(cut)
	s.Close()
	if f, ok, err := r.TryReceive(fresh); !ok || err != nil {
		t.Errorf("frame sent before the end: got %+v, %v", f, err)
	}
	for range 2 {
		if !r.Ready() {
			t.Error("the end of the ring is not ready to receive")
		}
		if _, _, err := r.TryReceive(fresh); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("ring truncated within a frame: got %v, want an unexpected EOF", err)
		}
	}
	s, r = shmPair(t, minRing)
	if r.Ready() {
		t.Error("an empty ring is ready to receive")
	}
	r.Close()
	if _, err := s.TrySend(whole); !errors.Is(err, net.ErrClosed) {
		t.Errorf("send to a closed receiver: got %v, want net.ErrClosed", err)
	}
}

func TestSenderWithoutRoomIsWoken(t *testing.T) {
	for name, size := range map[string]int{"of cells": 1, "of bulk": 1000} {
		t.Run(name, func(t *testing.T) {
			s, r := shmPair(t, minRing)
			f := numbered(1, make([]byte, size))
			for {
				s.own.Arm()
				done, err := s.TrySend(f)
				if err != nil {
					t.Fatal(err)
				}
				if !done {
					break
				}
			}
			for r.Ready() {
				if _, _, err := r.TryReceive(fresh); err != nil {
					t.Fatal(err)
				}
			}
			if s.own.state.Load() != awake {
				t.Error("room was made, but the sender was not woken")
			}
			if done, err := s.TrySend(f); !done || err != nil {
				t.Errorf("send into an empty ring: got %v, %v", done, err)
			}
		})
	}
}
