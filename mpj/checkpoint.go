package mpj

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj/internal/words"
)

// Checkpoint makes the state of this rank's program known to replicas that take the
// place of lost ones, so that they need not do again all that it has done. All
// replicas of a rank call it at the same points of the program, between two steps for
// instance; ranks need not call it together.
//
//	err := world.Checkpoint(func(to io.Writer) error {
//		return binary.Write(to, binary.LittleEndian, state) // step, and all that later ones need
//	}, func(from io.Reader) error {
//		return binary.Read(from, binary.LittleEndian, state)
//	})
//
// In a replica that runs, save may be called: it is when new replicas may come
// (p2prun --heal, with -r 2 or more) and none is being brought up to date at the
// moment. A new replica runs the program from its beginning up to its first
// Checkpoint, with the messages that were received there; so what comes before that is
// best kept short. The first Checkpoint then calls restore with what the last save of its rank has
// written, and the program goes on behind it; or, if there is no such thing, returns like any other.
//
// Nothing of this rank is under way: no request that is not complete (one that was freed
// does not count, but there is no checkpoint while it receives), no message that
// Mprobe has taken, no buffer of buffered mode, no goroutine that communicates. Messages
// that have come and are not received stay what they are. The communicators are those
// of the first Checkpoint: none has been made since. save and restore neither
// communicate nor print. A source of Rand begins anew: take one for each step, with its
// number in the seed. Files that the program has written are part of its state.
//
// save may write as much as the process may keep on disk, at most 1 GiB; a full disk is
// no error of its writer. The log of messages begins anew with every checkpoint, so that
// a program with checkpoints can be healed however long it runs. The output of a program
// has to have reached the user, in whole lines; for that Checkpoint waits a second at
// most, and then does without.
//
// An error is ErrRequest or ErrComm when something is under way, or what save or
// restore has returned.
func (w *World) Checkpoint(save func(io.Writer) error, restore func(io.Reader) error) error {
	const op = "Checkpoint"
	if save == nil || restore == nil {
		return w.failf(ErrArg, op, "save or restore is nil")
	}
	if err := w.atRest(op); err != nil {
		return err
	}
	return w.wrap(op, w.engine.Checkpoint(words.Checkpoint{
		Save: save, Restore: restore, Own: w.own, TakeOwn: w.takeOwn,
	}))
}

// atRest refuses a checkpoint while something is under way. It is the same at all
// replicas, and without.
func (w *World) atRest(op string) error {
	if n := w.active.Load(); n > 0 {
		return w.failf(ErrRequest, op, "%d requests or messages of Mprobe are under way: wait for them, or receive them, first", n)
	}
	if w.buffered.inUse() {
		return w.failf(ErrRequest, op, "messages are in the buffer of buffered mode: detach it first")
	}
	n := w.identities.count()
	if w.checkpointed == 0 {
		w.checkpointed = n
	}
	if made := n - w.checkpointed; made > 0 {
		return w.failf(ErrComm, op, "%d communicators have been made since the first one", made)
	}
	return nil
}

// inUse reports whether there are messages in the buffer.
func (b *sendBuffer) inUse() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.requests) > 0
}

// count returns how many ids are used.
func (s *identities) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.used)
}

// all returns the communicators that there are, by id.
func (s *identities) all() []*Comm {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Comm
	for _, id := range slices.Sorted(maps.Keys(s.used)) {
		if c := s.used[id]; c != nil {
			all = append(all, c)
		}
	}
	return all
}

// What a checkpoint has to know of this package is, as a row of varints,
//
//	records of output that the user has | of standard error | { id | operations | made } of each communicator

// A record is what is to be known of one communicator.
type record struct {
	id         uint32
	operations uint64 // non-blocking collectives so far
	made       uint64 // communicators made of it
}

// own describes this process, if the user has all that it has printed.
func (w *World) own() (b []byte, ok bool) {
	printed, ok := w.job.Printed()
	if !ok {
		return nil, false
	}
	b = binary.AppendUvarint(binary.AppendUvarint(nil, printed[0]), printed[1])
	for _, c := range w.identities.all() {
		b = binary.AppendUvarint(b, uint64(c.id))
		b = binary.AppendUvarint(b, uint64(c.operations.begun()))
		b = binary.AppendUvarint(b, c.made)
	}
	return b, true
}

// takeOwn makes this process what own has described.
func (w *World) takeOwn(b []byte) error {
	printed, records, err := decodeOwn(b)
	if err != nil {
		return err
	}
	for _, r := range records {
		c := w.identities.of(r.id)
		if c == nil {
			return fmt.Errorf("the checkpoint is of a program with a communicator %d, which this one has not made", r.id)
		}
		c.operations.goTo(int(r.operations))
		c.made = r.made
	}
	return w.job.Skip(printed)
}

// decodeOwn reads what own has written.
func decodeOwn(b []byte) (printed [2]uint64, records []record, err error) {
	next := func() (v uint64) {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			err, b = errors.New("the checkpoint's description of communicators is malformed"), nil
			return 0
		}
		b = b[n:]
		return v
	}
	printed = [2]uint64{next(), next()}
	for len(b) > 0 {
		r := record{id: uint32(next()), operations: next() % (1 << 62), made: next()}
		records = append(records, r)
	}
	if err != nil {
		return [2]uint64{}, nil, err
	}
	return printed, records, nil
}

// begun returns how many operations have been begun.
func (o *operations) begun() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count
}

// goTo makes the next operation the one after so many, which are done.
func (o *operations) goTo(count int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count = count
	clear(o.ends[:])
}
