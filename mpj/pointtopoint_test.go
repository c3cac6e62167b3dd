package mpj

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

type (
	sendFunc  = func(c *Comm, buf []int, dest, tag int) error
	isendFunc = func(c *Comm, buf []int, dest, tag int) (*Request, error)
	recvFunc  = func(c *Comm, buf []int, source, tag int) (Status, error)
)

// sends lists every mode, blocking, nonblocking and persistent.
var sends = []struct {
	name string
	send sendFunc
}{
	{"Send", Send[int]}, {"Ssend", Ssend[int]}, {"Bsend", Bsend[int]}, {"Rsend", Rsend[int]},
	{"Isend", waited(Isend[int])}, {"Issend", waited(Issend[int])}, {"Ibsend", waited(Ibsend[int])}, {"Irsend", waited(Irsend[int])},
	{"SendInit", started(SendInit[int])}, {"SsendInit", started(SsendInit[int])}, {"BsendInit", started(BsendInit[int])}, {"RsendInit", started(RsendInit[int])},
}

func waited(send isendFunc) sendFunc {
	return func(c *Comm, buf []int, dest, tag int) error {
		r, err := send(c, buf, dest, tag)
		if err != nil {
			return err
		}
		return last(r.Wait())
	}
}

func started(send isendFunc) sendFunc {
	return func(c *Comm, buf []int, dest, tag int) error {
		r, err := send(c, buf, dest, tag)
		if err != nil {
			return err
		}
		if err := r.Start(); err != nil {
			return err
		}
		return last(r.Wait())
	}
}

// recvs lists all functions for receiving.
var recvs = []struct {
	name string
	recv recvFunc
}{
	{"Recv", Recv[int]},
	{"Irecv", func(c *Comm, buf []int, source, tag int) (Status, error) {
		r, err := Irecv(c, buf, source, tag)
		if err != nil {
			return Status{}, err
		}
		return r.Wait()
	}},
	{"RecvInit", func(c *Comm, buf []int, source, tag int) (Status, error) {
		r, err := RecvInit(c, buf, source, tag)
		if err := first(err, Startall(r)); err != nil {
			return Status{}, err
		}
		return r.Wait()
	}},
	{"Mprobe", func(c *Comm, buf []int, source, tag int) (Status, error) {
		m, s, err := Mprobe(c, source, tag)
		if err != nil {
			return s, err
		}
		got, err := Mrecv(m, buf)
		if err == nil && got != s {
			err = fmt.Errorf("probed %v, received %v", s, got)
		}
		return got, err
	}},
	{"Improbe", func(c *Comm, buf []int, source, tag int) (Status, error) {
		for {
			m, _, ok, err := Improbe(c, source, tag)
			if err != nil {
				return Status{}, err
			}
			if !ok {
				continue
			}
			r, err := Imrecv(m, buf)
			if err != nil {
				return Status{}, err
			}
			return r.Wait()
		}
	}},
	{"WaitContext", func(c *Comm, buf []int, source, tag int) (Status, error) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		r, err := Irecv(c, buf, source, tag)
		if err != nil {
			return Status{}, err
		}
		return r.WaitContext(ctx)
	}},
	{"ProbeContext", func(c *Comm, buf []int, source, tag int) (Status, error) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s, err := ProbeContext(ctx, c, source, tag)
		if err != nil {
			return s, err
		}
		return Recv(c, buf, s.Source, s.Tag)
	}},
}

// TestEverySendMatchesEveryReceive checks that every function for receiving works with every
// function for sending, for empty, short and long messages, with a named source or AnySource.
func TestEverySendMatchesEveryReceive(t *testing.T) {
	inPairs(t, func(w *World) error {
		if err := w.BufferAttach(1 << 20); err != nil {
			return err
		}
		for i, s := range sends {
			for j, r := range recvs {
				for k, count := range []int{(i + j) % 2, 9000} {
					if err := meet(w, s.send, r.recv, count, (i+j+k)%2 == 0); err != nil {
						return fmt.Errorf("%d elements by %s to %s: %w", count, s.name, r.name, err)
					}
				}
			}
		}
		if size, err := w.BufferDetach(); err != nil || size != 1<<20 {
			return fmt.Errorf("detached %d bytes: %w", size, err)
		}
		return nil
	})
}

// inPairs runs program as two ranks, with each kind of channel.
func inPairs(t *testing.T, program func(*World) error) {
	for _, shape := range []localworld.Config{
		{Ranks: 2, Replicas: 1}, {Ranks: 2, Replicas: 1, Sockets: true}, {Ranks: 2, Replicas: 2}, {Ranks: 2, Replicas: 2, Sockets: true},
	} {
		t.Run(fmt.Sprintf("r=%d,sockets=%v", shape.Replicas, shape.Sockets), func(t *testing.T) {
			if err := runIn(localworld.New(context.Background(), shape), program); err != nil {
				t.Error(err)
			}
		})
	}
}

// meet sends count elements from one of ranks 0 and 1 to the other.
func meet(w *World, send sendFunc, recv recvFunc, count int, wild bool) error {
	from := count % 2
	if w.Rank() == from {
		return send(w.Comm, data[int](from, count), 1-from, count)
	}
	source, tag := from, count
	if wild {
		source, tag = AnySource, AnyTag
	}
	buf := make([]int, count+1)
	s, err := recv(w.Comm, buf, source, tag)
	if err == nil && (s != Status{Source: from, Tag: count, Size: 8 * count}) {
		err = fmt.Errorf("the status is %+v", s)
	}
	return first(err, want("elements", buf[:count], data[int](from, count)))
}

// TestProcNullCompletesAtOnce checks that every call with ProcNull succeeds at once and reports ProcNull.
func TestProcNullCompletesAtOnce(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		buf := []int{7}
		for _, s := range sends {
			if err := s.send(w.Comm, buf, ProcNull, 0); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		for _, r := range recvs[:5] {
			s, err := r.recv(w.Comm, buf, ProcNull, 0)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			if s != nothing || Count[int](s) != 0 || buf[0] != 7 {
				return fmt.Errorf("%s from ProcNull returned %v and the buffer %v", r.name, s, buf)
			}
		}
		s, err := Sendrecv(w.Comm, buf, ProcNull, 0, buf, ProcNull, 0)
		if err != nil || s != nothing {
			return first(err, fmt.Errorf("Sendrecv: %v", s))
		}
		r, err := Irecv(w.Comm, buf, ProcNull, 0)
		if err != nil {
			return err
		}
		if i, s, err := Waitany(nil, r); i != 1 || s != nothing || err != nil {
			return fmt.Errorf("Waitany: %d, %v, %s", i, s, fmt.Sprint(err))
		}
		return nil
	})
}

func TestSendrecvReplaceShiftsARing(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		n := w.Size()
		for _, count := range []int{1, 50000} {
			buf := data[int](w.Rank(), count)
			left, right := (w.Rank()+n-1)%n, (w.Rank()+1)%n
			s, err := SendrecvReplace(w.Comm, buf, right, 1, left, 1)
			if err := first(err, want("ring", buf, data[int](left, count))); err != nil {
				return err
			}
			if s.Source != left || Count[int](s) != count {
				return fmt.Errorf("the status is %v", s)
			}
		}
		return nil
	})
}

// TestMessagesDoNotOvertake checks that messages of one rank in one communicator are received in the
// order in which they were sent, whatever their modes and lengths and the wildcards of the receives.
func TestMessagesDoNotOvertake(t *testing.T) {
	const messages = 200
	inEveryShape(t, func(w *World) error {
		if w.Rank() == 0 {
			return sendInOrder(w, messages)
		}
		buf := make([]int, 10000)
		for i := range messages {
			source, tag := 0, i%3
			if i%2 == 0 {
				source = AnySource
			}
			if i%5 == 0 {
				tag = AnyTag
			}
			s, err := Recv(w.Comm, buf, source, tag)
			if err != nil || buf[0] != i || s.Tag != i%3 {
				return fmt.Errorf("message %d: got %d with tag %d: %w", i, buf[0], s.Tag, err)
			}
		}
		return nil
	})
}

func sendInOrder(w *World, messages int) error {
	var rs []*Request
	for i := range messages {
		for dest := 1; dest < w.Size(); dest++ {
			buf := make([]int, 1+(i%4)/3*9999) // every fourth message is long
			buf[0] = i
			send := Isend[int]
			if i%7 == 0 {
				send = Issend[int]
			}
			r, err := send(w.Comm, buf, dest, i%3)
			if err != nil {
				return err
			}
			rs = append(rs, r)
		}
	}
	return last(Waitall(rs...))
}

// TestWildcardsAreFair checks that no rank starves when several ranks keep sending. If a message of
// each rank has arrived, the next wildcard receives take one message of each, even if the ranks
// whose messages were taken first send again at once.
func TestWildcardsAreFair(t *testing.T) {
	const rounds = 50
	for _, sockets := range []bool{false, true} {
		job := localworld.New(context.Background(), localworld.Config{Ranks: 4, Replicas: 1, Sockets: sockets})
		err := runIn(job, func(w *World) error {
			for i := range rounds {
				if w.Rank() > 0 {
					if err := Ssend(w.Comm, []int{i}, 0, 0); err != nil {
						return err
					}
				} else if err := receiveOneOfEach(w); err != nil {
					return fmt.Errorf("round %d: %w", i, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("sockets=%v: %v", sockets, err)
		}
	}
}

func receiveOneOfEach(w *World) error {
	for source := 1; source < w.Size(); source++ {
		if _, err := Probe(w.Comm, source, AnyTag); err != nil {
			return err
		}
	}
	taken := make([]int, w.Size())
	for range w.Size() - 1 {
		s, err := Recv(w.Comm, make([]int, 1), AnySource, AnyTag)
		if err != nil {
			return err
		}
		taken[s.Source]++
	}
	return want("messages taken of each", taken, []int{0, 1, 1, 1})
}

// TestCommunicatorsSeparateMessages checks that a message in one communicator is not received in
// another communicator with the same ranks.
func TestCommunicatorsSeparateMessages(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		other, err := w.Dup()
		if err != nil {
			return err
		}
		to, from := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
		if err := first(Send(w.Comm, []int{1}, to, 5), Send(other, []int{2}, to, 5)); err != nil {
			return err
		}
		buf := make([]int, 1)
		if _, err := Recv(other, buf, AnySource, AnyTag); err != nil || buf[0] != 2 {
			return first(err, fmt.Errorf("in the duplicate: got %v", buf))
		}
		if _, err := Recv(w.Comm, buf, from, 5); err != nil || buf[0] != 1 {
			return first(err, fmt.Errorf("in the world: got %v", buf))
		}
		return Barrier(w.Comm)
	})
}

// TestShortSendsNeedNoReceive checks that ranks that all send short messages before they receive do
// not deadlock.
func TestShortSendsNeedNoReceive(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		const rounds = 20
		send, recv := make([]byte, 1024), make([]byte, 1024)
		for i := range rounds {
			for dest := range w.Size() {
				if err := Send(w.Comm, send, dest, i); err != nil {
					return err
				}
			}
		}
		for i := range rounds {
			for source := range w.Size() {
				if _, err := Recv(w.Comm, recv, source, i); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// TestBufferedModeAccountsForItsBuffer checks that a message that does not fit into the send buffer
// is rejected, and is accepted after earlier messages have been sent.
func TestBufferedModeAccountsForItsBuffer(t *testing.T) {
	inPairs(t, func(w *World) error {
		if w.Rank() > 0 {
			return receiveAll(w)
		}
		message := make([]byte, 1000)
		if err := Bsend(w.Comm, message, 1, 0); !errors.Is(err, ErrBuffer) {
			return fmt.Errorf("Bsend without a buffer: got %w", err)
		}
		if err := first(w.BufferAttach(2*(1000+BsendOverhead)), Bsend(w.Comm, message, 1, 0), Bsend(w.Comm, message, 1, 0)); err != nil {
			return err
		}
		message[0] = 9 // Bsend has copied the message
		if err := Bsend(w.Comm, make([]byte, 3000), 1, 0); !errors.Is(err, ErrBuffer) || !strings.Contains(err.Error(), "needs 3064 bytes") {
			return fmt.Errorf("Bsend of too long a message: got %w", err)
		}
		if err := w.BufferAttach(1); !errors.Is(err, ErrBuffer) {
			return fmt.Errorf("a second buffer: got %w", err)
		}
		if err := last(Recv(w.Comm, message[:1], 1, 1)); err != nil {
			return err
		}
		if err := Bsend(w.Comm, make([]byte, 2000), 1, 0); err != nil {
			return fmt.Errorf("after the first messages were sent: %w", err)
		}
		if _, err := w.BufferDetach(); err != nil {
			return err
		}
		if _, err := w.BufferDetach(); !errors.Is(err, ErrBuffer) {
			return fmt.Errorf("a second time: got %w", err)
		}
		return nil
	})
}

func receiveAll(w *World) error {
	buf := make([]byte, 2000)
	for i := range 3 {
		if i == 2 {
			if err := Ssend(w.Comm, []byte{1}, 0, 1); err != nil {
				return err
			}
		}
		if _, err := Recv(w.Comm, buf, 0, 0); err != nil || buf[0] != 0 {
			return fmt.Errorf("message %d begins with %d: %w", i, buf[0], err)
		}
	}
	return nil
}

// TestMatchedMessagesBelongToOneGoroutine checks that goroutines that probe and receive in one
// communicator each get a message that fits, because no other receive can take a matched message.
func TestMatchedMessagesBelongToOneGoroutine(t *testing.T) {
	const messages, goroutines = 300, 3
	err := RunLocal(context.Background(), 2, func(w *World) error {
		if w.Rank() == 0 {
			for i := range messages {
				if err := Send(w.Comm, make([]byte, i), 1, 0); err != nil {
					return err
				}
			}
			return nil
		}
		var wg sync.WaitGroup
		errs := make([]error, goroutines)
		for g := range goroutines {
			wg.Go(func() {
				for range messages / goroutines {
					m, s, err := Mprobe(w.Comm, 0, 0)
					if err == nil {
						_, err = Mrecv(m, make([]byte, s.Size))
					}
					errs[g] = first(errs[g], err)
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
	if err != nil {
		t.Error(err)
	}
}
