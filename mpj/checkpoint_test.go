package mpj

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// A progress is the state of the program checkpointed: the observations in the rounds so far.
type progress struct{ Seen []string }

// checkpointed is like mixed, with a checkpoint before each round. At each checkpoint, some messages
// have not been received.
func checkpointed(d *drill, w *World) error {
	c, err := w.Dup()
	if err != nil {
		return err
	}
	p := view.Process{Rank: w.Rank(), Replica: w.Replica()}
	var s progress
	for len(s.Seen) < drillAll {
		err := w.Checkpoint(func(to io.Writer) error {
			return gob.NewEncoder(to).Encode(s)
		}, func(from io.Reader) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			err := gob.NewDecoder(from).Decode(&s)
			d.seen[p], d.restored = s.Seen, max(d.restored, len(s.Seen))
			return err
		})
		if err != nil {
			return err
		}
		observed, err := checkpointedRound(w, c, len(s.Seen))
		if err != nil {
			return err
		}
		d.round(w, len(s.Seen), observed)
		s.Seen = append(s.Seen, observed)
	}
	return nil
}

func checkpointedRound(w *World, c *Comm, round int) (string, error) {
	sum, got, early := make([]int, 1), make([]int, 1), make([]int, 1)
	observed := fmt.Sprint(w.RandomSeed()%1000, w.Wtime())
	if round > 0 { // messages of the previous round
		_, err := Recv(w.Comm, early, w.Rank(), 9)
		if err := first(err, last(Recv(c, sum, (w.Rank()+1)%w.Size(), AnyTag))); err != nil {
			return "", err
		}
		observed += fmt.Sprint(early, sum)
	}
	if w.Rank() == 0 {
		for range 2 * (w.Size() - 1) {
			s, err := Recv(w.Comm, got, AnySource, AnyTag)
			if err != nil {
				return "", err
			}
			observed += fmt.Sprint(" ", s.Source, got)
		}
	} else if err := first(Send(w.Comm, []int{round}, 0, 1), Ssend(w.Comm, []int{-round}, 0, 2)); err != nil {
		return "", err
	}
	mine := w.Rand(uint64(round)).IntN(100)
	r, err := Iallreduce(c, []int{mine}, sum, Sum)
	if err := first(err, last(r.Wait()), Allreduce(w.Comm, []int{round}, got, Sum)); err != nil {
		return "", err
	}
	if round < drillAll-1 {
		err = first(Send(w.Comm, []int{mine}, w.Rank(), 9), Send(c, []int{mine + round}, (w.Rank()+w.Size()-1)%w.Size(), round))
	}
	return fmt.Sprint(observed, got, sum), err
}

// TestNewReplicaResumesFromACheckpoint checks R1 and R2 for a rank that loses all its original
// replicas after a new replica has resumed from the checkpoint of an original replica.
func TestNewReplicaResumesFromACheckpoint(t *testing.T) {
	skip.Long(t)
	shapes := []localworld.Config{{Ranks: 3, Replicas: 2}, {Ranks: 2, Replicas: 3}, {Ranks: 3, Replicas: 2, Sockets: true}}
	for _, shape := range shapes {
		for _, victim := range []view.Process{{Rank: 0}, {Rank: 0, Replica: 1}, {Rank: 1}, {Rank: 1, Replica: 1}} {
			t.Run(fmt.Sprintf("n=%d r=%d sockets %v, %v lost", shape.Ranks, shape.Replicas, shape.Sockets, victim), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				shape.Heal = t.TempDir()
				d := newDrill(localworld.New(ctx, shape), victim)
				if err := runIn(d.job, func(w *World) error { return checkpointed(d, w) }); err != nil {
					t.Fatal(err)
				}
				d.check(t)
				if d.restored == 0 {
					t.Error("no checkpoint was restored")
				}
			})
		}
	}
}

func noSave(io.Writer) error    { return errors.New("saved") }
func noRestore(io.Reader) error { return errors.New("restored") }

func TestCheckpointIsRefusedDuringPendingOperations(t *testing.T) {
	err := RunLocal(context.Background(), 1, func(w *World) error {
		want := func(what string, class Class) {
			if err := w.Checkpoint(noSave, noRestore); class == "" && err != nil || class != "" && !errors.Is(err, class) {
				t.Errorf("checkpoint with pending operation %s: got %v, want %q", what, err, class)
			}
		}
		want("nothing", "")
		buf := make([]int, 1)
		r, err := Irecv(w.Comm, buf, 0, 1)
		want("a receive", ErrRequest)
		err = first(err, Send(w.Comm, buf, 0, 1), last(r.Wait()))
		want("a receive that is complete", "")
		err = first(err, Send(w.Comm, buf, 0, 2))
		want("a message that has not been received", "")
		m, _, probed := Mprobe(w.Comm, 0, 2)
		want("a message of Mprobe", ErrRequest)
		err = first(err, probed, last(Mrecv(m, buf)))
		want("a message of Mprobe that has been received", "")
		p, inited := RecvInit(w.Comm, buf, 0, 4)
		err = first(err, inited, p.Start())
		want("a persistent receive", ErrRequest)
		p.Free()
		want("a persistent receive that was freed", "")
		p.Free()
		err = first(err, Send(w.Comm, buf, 0, 4), last(p.Wait()))
		b, begun := Ibarrier(w.Comm)
		b.Free()
		want("a collective", ErrRequest)
		err = first(err, begun, last(b.Wait()), w.BufferAttach(1000), Bsend(w.Comm, buf, 0, 3))
		want("a buffer", ErrRequest)
		_, detached := w.BufferDetach()
		err = first(err, detached, last(Recv(w.Comm, buf, 0, 3)))
		c, made := w.Dup()
		want("a new communicator", ErrComm)
		if err := w.Checkpoint(nil, noRestore); !errors.Is(err, ErrArg) {
			t.Errorf("nil save and restore: %v", err)
		}
		return first(err, made, c.Free())
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestErrorOfSaveIsReturned(t *testing.T) {
	job := localworld.New(context.Background(), localworld.Config{Ranks: 1, Replicas: 2, Heal: t.TempDir()})
	err := runIn(job, func(w *World) error {
		if err := w.Checkpoint(noSave, noRestore); err == nil || !bytes.Contains([]byte(err.Error()), []byte("saved")) {
			t.Errorf("%v, want the error of save", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// FuzzDecodeOwn checks that arbitrary descriptions of communicators are harmless.
func FuzzDecodeOwn(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{3, 4, 1, 2, 3})
	f.Add([]byte{3, 4, 1, 2})
	f.Add(bytes.Repeat([]byte{0xff}, 30))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, records, err := decodeOwn(b); err == nil && (len(records) > len(b)/3 || len(b) < 2) {
			t.Errorf("%d communicators in %d bytes", len(records), len(b))
		}
	})
}
