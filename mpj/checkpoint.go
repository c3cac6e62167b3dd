package mpj

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// Checkpoint makes the state of this rank's program available to replicas that replace lost ones, so
// that they need not repeat its past work. All replicas of a rank call Checkpoint at the same points
// of the program, for instance between two steps. Different ranks need not call Checkpoint at the
// same time.
//
//	err := world.Checkpoint(func(to io.Writer) error {
//		return binary.Write(to, binary.LittleEndian, state) // step, and everything that later steps need
//	}, func(from io.Reader) error {
//		return binary.Read(from, binary.LittleEndian, state)
//	})
//
// Checkpoint calls save in a running replica only if new replicas may join, which requires p2prun
// --heal and -r 2 or more. It does not call save while a new replica is being brought up to date.
//
// A new replica runs the program from its beginning to its first Checkpoint, with the messages that
// its rank received in that part, so keep this part short. The first Checkpoint then calls restore
// with the data that the last save of its rank wrote, and the program continues from there. Without
// a saved state, Checkpoint returns as in a running replica.
//
// No communication of this rank may be in progress: no incomplete request, no message that Mprobe
// has taken, no message in the attached buffer, and no goroutine that communicates. A freed
// request does not count, but no checkpoint is made while it still receives. Messages that have
// arrived and were not received yet are preserved. No communicator may be created after the first
// Checkpoint.
//
// save and restore must neither communicate nor print. The state of a Rand source is not saved:
// create a source for each step, with the step number in the seed. Files that the program has
// written are part of its state, so save must include them.
//
// save may write up to the disk limit of the process, at most 1 GiB. If the disk is full, the writer
// reports no error, and no checkpoint is made. Each checkpoint truncates the message log, so a
// program with checkpoints can be healed however long it runs. All output of the program must have
// reached the user, in whole lines. Checkpoint waits at most one second for this, and otherwise
// makes no checkpoint.
//
// Checkpoint returns ErrRequest or ErrComm if these conditions are violated, or the error of save
// or restore.
func (w *World) Checkpoint(save func(io.Writer) error, restore func(io.Reader) error) error {
	const op = "Checkpoint"
	if save == nil || restore == nil {
		return w.failf(ErrArg, op, "save or restore is nil")
	}
	if err := w.atRest(op); err != nil {
		return err
	}
	return w.wrap(op, w.engine().Checkpoint(engineapi.Checkpoint{
		Save: save, Restore: restore, Own: w.own, TakeOwn: w.takeOwn,
	}))
}

// atRest returns an error while communication is in progress. The result is the same at all
// replicas, and the same without replicas.
func (w *World) atRest(op string) error {
	if n := w.base.Process().Active(); n > 0 {
		return w.failf(ErrRequest, op, "%d requests or messages of Mprobe are in progress: wait for them, or receive them, first", n)
	}
	if w.base.Process().BufferInUse() {
		return w.failf(ErrRequest, op, "the attached buffer contains messages: detach it first")
	}
	n := w.base.Process().IDs()
	if w.checkpointed == 0 {
		w.checkpointed = n
	}
	if made := n - w.checkpointed; made > 0 {
		return w.failf(ErrComm, op, "%d communicators were created after the first checkpoint", made)
	}
	return nil
}

// The state that this package adds to a checkpoint is a sequence of varints, the last three for each
// communicator:
//
//	records of standard output that the user has | of standard error | { id | operations | made } ...

// A record is the saved state of one communicator.
type record struct {
	id         uint32
	operations uint64 // number of nonblocking collectives so far
	made       uint64 // number of communicators created from it
}

// own returns the state of this process, and whether the user has received all its output.
func (w *World) own() (b []byte, ok bool) {
	printed, ok := w.job.Printed()
	if !ok {
		return nil, false
	}
	b = binary.AppendUvarint(binary.AppendUvarint(nil, printed[0]), printed[1])
	for _, c := range w.base.Process().Comms() {
		b = binary.AppendUvarint(b, uint64(c.ID()))
		b = binary.AppendUvarint(b, uint64(core.Begun(c)))
		b = binary.AppendUvarint(b, c.Made())
	}
	return b, true
}

// takeOwn restores the state that own returned.
func (w *World) takeOwn(b []byte) error {
	printed, records, err := decodeOwn(b)
	if err != nil {
		return err
	}
	for _, r := range records {
		c := w.base.Process().Comm(r.id)
		if c == nil {
			return fmt.Errorf("the checkpoint contains communicator %d, which this program has not created", r.id)
		}
		core.SetBegun(c, int(r.operations))
		c.SetMade(r.made)
	}
	return w.job.Skip(printed)
}

// decodeOwn decodes the state that own returned.
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
