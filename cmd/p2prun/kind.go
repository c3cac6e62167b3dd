package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/cmd/internal/program"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// All replicas of a job run a program of one kind, because the replicas of a rank must behave alike. A
// native program and a module may differ in clocks, random numbers and the last bit of a float.

// platforms returns the platforms for which the program is built before any peer is asked.
func platforms(opt peer.RunOptions, prog *program.Program) ([]submit.Platform, error) {
	switch {
	case !slices.Contains([]string{peer.AsAuto, peer.AsNative, peer.AsWasm}, opt.As):
		return nil, fmt.Errorf("--as %.20q: want %s, %s or %s", opt.As, peer.AsAuto, peer.AsNative, peer.AsWasm)
	case prog.Portable() && opt.As == peer.AsWasm:
		return []submit.Platform{program.Wasm}, nil
	case prog.Is(program.Wasm) && opt.As == peer.AsNative:
		return nil, fmt.Errorf("--as native: %s is a WebAssembly module", prog.Name)
	case prog.Is(program.Local) && opt.As == peer.AsWasm:
		return nil, fmt.Errorf("--as wasm: %s is an executable; name a Go package, which can be built as a module", prog.Name)
	}
	return []submit.Platform{program.Local}, nil
}

// wantModule reports whether a job found too few peers because they refuse its native program. More peers may
// then accept a module.
func wantModule(opt peer.RunOptions, prog *program.Program, r job.Result) bool {
	return opt.As == peer.AsAuto && prog.Portable() && r.Shortage != nil &&
		slices.ContainsFunc(r.Shortage.Tallies, func(t job.Tally) bool {
			return slices.Contains([]job.Reason{job.WasmOnly, job.Unconfined, job.Platforms}, t.Reason)
		})
}

// runAsModule runs the job again, as a module.
func (j *submission) runAsModule(ctx context.Context, s *session) (job.Result, error) {
	j.show.Say("too few peers accept your native programs: building a WebAssembly module, which more peers may accept (--as wasm builds it at once)")
	var err error
	if j.req.Programs, err = build(ctx, j.prog, []submit.Platform{program.Wasm}, j.built); err != nil {
		return job.Result{}, err
	}
	return j.run(ctx, s)
}
