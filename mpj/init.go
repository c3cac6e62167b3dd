package mpj

import "context"

// Init joins the job that this process was started for, and returns when every process of the job
// has called it. A program that was started by hand, and not by a peer, gets a world of one rank. A
// process calls Init once.
//
// When ctx ends, all blocked calls in every communicator return an error that wraps its cause. Most
// communication functions take no context of their own.
func Init(ctx context.Context) (*World, error) {
	if !wireMachine() {
		return nil, failf(ErrOther, "Init", "machines that are not little-endian with 64-bit int are not supported yet")
	}
	checks, err := checksWanted()
	if err != nil {
		return nil, err
	}
	w, err := join(ctx)
	if err != nil {
		return nil, &Error{Class: ErrOther, Op: "Init", Rank: Undefined, Err: err}
	}
	if checks {
		w.detect(0)
	}
	return w, nil
}
