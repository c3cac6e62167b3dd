package channel

import (
	"encoding/binary"
	"errors"
	"testing"
)

// readablePair returns the ends of a ring whose receiver has received a frame.
func readablePair(t testing.TB, allowed Reading) (*ShmSender, *ShmReceiver) {
	t.Helper()
	s, r := shmPair(t, minRing)
	r.SetReading(allowed)
	s.TrySend(numbered(1, nil))
	if _, ok, err := r.TryReceive(fresh); !ok || err != nil {
		t.Fatal(ok, err)
	}
	return s, r
}

func TestMemoryIsReadOnlyWhereAllowed(t *testing.T) {
	for allowed, want := range map[Reading]bool{ReadAny: true, ReadOthers: false, ReadNone: false} {
		s, r := readablePair(t, allowed)
		from, to := []byte("somewhere"), make([]byte, 9)
		err := r.ReadMemory(s.Address(from), to)
		if !want {
			if r.CanRead() || !errors.Is(err, ErrUnreadable) {
				t.Errorf("allowed %d: own memory was read: %v", allowed, err)
			}
			continue
		}
		if err != nil || string(to) != string(from) {
			t.Errorf("allowed %d: got %q, %v", allowed, to, err)
		}
	}
}

func TestReadOfUnmappedMemoryIsAnError(t *testing.T) {
	_, r := readablePair(t, ReadAny)
	for _, address := range []uint64{1, 1 << 46, 1<<64 - 1} {
		if err := r.ReadMemory(address, make([]byte, 100)); err == nil || errors.Is(err, ErrUnreadable) {
			t.Errorf("at %#x: got %v, want an error that names the sender", address, err)
		}
	}
	if err := r.ReadMemory(0, make([]byte, ReadMost+1)); err == nil {
		t.Error("a read of more than ReadMost bytes succeeded")
	}
	if !r.CanRead() {
		t.Error("a wrong address made all memory unreadable")
	}
}

// TestMemoryIsReadOnlyFromTheSendersProcess checks that the receiver does not read from a process
// that has not mapped the ring.
func TestMemoryIsReadOnlyFromTheSendersProcess(t *testing.T) {
	for name, lie := range map[string]func(*ring){
		"another process":                 func(r *ring) { r.control.hello.pid.Store(1) },
		"no process":                      func(r *ring) { r.control.hello.pid.Store(1<<31 - 1) },
		"number that is not a process ID": func(r *ring) { r.control.hello.pid.Store(1<<64 - 1) },
		"no hello":                        func(r *ring) { r.control.hello.pid.Store(0) },
		"wrong address":                   func(r *ring) { r.control.hello.base.Add(4096) },
	} {
		s, r := shmPair(t, minRing)
		r.SetReading(ReadAny)
		lie(s.ring)
		s.TrySend(numbered(1, nil))
		if _, ok, err := r.TryReceive(fresh); !ok || err != nil || r.CanRead() {
			t.Errorf("%s: got %v, %v, memory read %v", name, ok, err, r.CanRead())
		}
	}
}

// TestMemoryOfAClosedSenderIsNotRead checks that memory is not read after the sender has closed,
// because it may have changed.
func TestMemoryOfAClosedSenderIsNotRead(t *testing.T) {
	s, r := readablePair(t, ReadAny)
	from := make([]byte, 10)
	s.Close()
	if err := r.ReadMemory(s.Address(from), make([]byte, 10)); !errors.Is(err, ErrUnreadable) {
		t.Errorf("got %v, want %v", err, ErrUnreadable)
	}
}

func TestReadMemoryAllocatesNothing(t *testing.T) {
	s, r := readablePair(t, ReadAny)
	from, to := make([]byte, 1<<16), make([]byte, 1<<16)
	got := testing.AllocsPerRun(100, func() {
		if err := r.ReadMemory(s.Address(from), to); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}

// show reports the address of some memory, and keeps that memory until it receives another frame.
func show(e *pollingEnd) error {
	memory := make([]byte, 3*ReadMost+5)
	for i := range memory {
		memory[i] = byte(i * 7)
	}
	if err := e.send(numbered(0, binary.LittleEndian.AppendUint64(nil, e.s.Address(memory)))); err != nil {
		return err
	}
	_, err := e.receive(fresh)
	if memory[1] != 7 {
		return errors.New("memory has changed")
	}
	return err
}

func TestMemoryOfAnotherProcess(t *testing.T) {
	e := startChild(t, "show", 0, minRing)
	f, err := e.receive(fresh)
	if err != nil {
		t.Fatal(err)
	}
	if !e.r.CanRead() {
		t.Log("this system does not let a process read the memory of another process")
		return
	}
	address, got := binary.LittleEndian.Uint64(f.Payload), make([]byte, 3*ReadMost+5)
	for n := 0; n < len(got); n += ReadMost {
		if err := e.r.ReadMemory(address+uint64(n), got[n:min(n+ReadMost, len(got))]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range got {
		if got[i] != byte(i*7) {
			t.Fatalf("byte %d is %d", i, got[i])
		}
	}
}

// TestMemoryOfAProcessThatHasEnded checks that the memory of a killed sender cannot be read, even if
// its process ID is reused.
func TestMemoryOfAProcessThatHasEnded(t *testing.T) {
	e := startChild(t, "show", 0, minRing)
	f, err := e.receive(fresh)
	if err != nil {
		t.Fatal(err)
	}
	e.kill(t)
	address := binary.LittleEndian.Uint64(f.Payload)
	for range 2 {
		if err := e.r.ReadMemory(address, make([]byte, 10)); !errors.Is(err, ErrUnreadable) {
			t.Errorf("got %v, want %v", err, ErrUnreadable)
		}
	}
}

// TestMemoryOfAReusedProcessID checks that no memory is read from a process that has the process ID
// of an ended sender.
func TestMemoryOfAReusedProcessID(t *testing.T) {
	s, r := readablePair(t, ReadAny)
	secret := []byte("not for you")
	r.source.proof++ // the other process has no ring at this address
	if err := r.ReadMemory(s.Address(secret), make([]byte, len(secret))); !errors.Is(err, ErrUnreadable) {
		t.Errorf("got %v, want %v", err, ErrUnreadable)
	}
}
