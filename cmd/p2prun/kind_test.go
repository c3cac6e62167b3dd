package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/cmd/internal/program"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

func TestAsSelectsTheBuild(t *testing.T) {
	skip.Long(t)
	dir := t.TempDir()
	module, script := filepath.Join(dir, "x.wasm"), filepath.Join(dir, "x")
	for name, content := range map[string]string{module: "\x00asm\x01\x00\x00\x00", script: "#!/bin/sh\n"} {
		if err := os.WriteFile(name, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		as, program string
		want        submit.Platform
		wrong       bool
	}{
		{as: peer.AsAuto, program: ".", want: program.Local},
		{as: peer.AsNative, program: ".", want: program.Local},
		{as: peer.AsWasm, program: ".", want: program.Wasm},
		{as: peer.AsAuto, program: module, want: program.Local}, // Build determines the kind of a file
		{as: peer.AsWasm, program: module, want: program.Local},
		{as: peer.AsNative, program: module, wrong: true},
		{as: peer.AsNative, program: script, want: program.Local},
		{as: peer.AsWasm, program: script, wrong: true},
		{as: "java", program: ".", wrong: true},
	} {
		prog, err := program.Find(t.Context(), test.program)
		if err != nil {
			t.Fatal(err)
		}
		got, err := platforms(peer.RunOptions{As: test.as}, prog)
		if (err != nil) != test.wrong || err == nil && !slices.Equal(got, []submit.Platform{test.want}) {
			t.Errorf("--as %s %s: got %v, %v", test.as, test.program, got, err)
		}
	}
}

func TestModuleIsTriedIfPeersAcceptNothingElse(t *testing.T) {
	pkg, err := program.Find(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	lacks := func(reasons ...job.Reason) job.Result {
		s := &job.Shortage{}
		for _, r := range reasons {
			s.Tallies = append(s.Tallies, job.Tally{Reason: r, Peers: 1})
		}
		return job.Result{Shortage: s}
	}
	for _, test := range []struct {
		as     string
		result job.Result
		want   bool
	}{
		{peer.AsAuto, lacks(job.Busy, job.WasmOnly), true},
		{peer.AsAuto, lacks(job.Unconfined), true},
		{peer.AsAuto, lacks(job.Platforms), true},
		{peer.AsAuto, lacks(job.Busy, job.Denied), false},
		{peer.AsAuto, job.Result{Status: 1}, false},
		{peer.AsNative, lacks(job.WasmOnly), false},
	} {
		if got := wantModule(peer.RunOptions{As: test.as}, pkg, test.result); got != test.want {
			t.Errorf("--as %s: %v after %+v", test.as, got, test.result.Shortage)
		}
	}
}
