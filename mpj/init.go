package mpj

import "context"

// Init joins the job for which this process was started, and returns when every process of the job
// has called Init. A program that was started by hand, and not by a peer, gets a world of one rank.
// A process calls Init once.
//
// When ctx ends, all blocked calls in every communicator return an error that wraps the cause of
// ctx. Most communication functions do not have a context argument.
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
