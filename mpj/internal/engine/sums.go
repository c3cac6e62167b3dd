package engine

import "github.com/p2pmpi/p2pmpi/internal/protection"

// A Checkpointer is a transport for which the state and the messages of the program are the same at
// all replicas.
type Checkpointer interface {
	// Checkpoint implements Engine.Checkpoint. The engine's mutex is not held.
	Checkpoint(c Checkpoint) error
	// Sums implements Engine.Sums.
	Sums() (sums []protection.Sum, ok bool)
}

// Checkpoint makes a checkpoint of the program. Replicas that join the rank later then need not
// replay the log between the first checkpoint and this one. If this process is itself such a replica
// and calls Checkpoint for the first time, it resumes from the last checkpoint of its rank. The
// program must have no operation in progress. If the checkpoint cannot be made, for example because
// the disk is full, the log stays as it was and Checkpoint returns nil. A non-nil error comes from
// Save, Restore, TakeOwn or the engine.
func (e *Engine) Checkpoint(c Checkpoint) error {
	e.mu.Lock()
	checkpointer, ok := e.transport.(Checkpointer)
	if e.err != nil || !ok {
		defer e.mu.Unlock()
		return e.err
	}
	e.mu.Unlock()
	return checkpointer.Checkpoint(c)
}

// Sums returns the sums of all messages that this process has sent, shortened by protection.Clip. ok
// is false without replicas, and when the process has resumed from a checkpoint.
func (e *Engine) Sums() (sums []protection.Sum, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	checkpointer, ok := e.transport.(Checkpointer)
	if !ok {
		return nil, false
	}
	return checkpointer.Sums()
}
