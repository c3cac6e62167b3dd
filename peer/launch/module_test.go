package launch

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/internal/limits"
	"github.com/p2pmpi/p2pmpi/peer/internal/policy"
)

// idleModule returns a module with so many functions, none of which does anything.
func idleModule(functions int) []byte {
	section := func(id byte, n int, each []byte) []byte {
		body := append(binary.AppendUvarint(nil, uint64(n)), bytes.Repeat(each, n)...)
		return append(binary.AppendUvarint([]byte{id}, uint64(len(body))), body...)
	}
	return bytes.Join([][]byte{
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, 1, []byte{0x60, 0, 0}),          // a type of functions: nothing to nothing
		section(3, functions, []byte{0}),           // are of it
		section(10, functions, []byte{2, 0, 0x0b}), // have no variables, and end
	}, nil)
}

// newModuleJob returns a job of one process that is a module, on a peer that grants so much.
func newModuleJob(t *testing.T, module []byte, g limits.Grant) *testJob {
	t.Helper()
	b := newTestbed(t, 1, 1)
	b.program = filepath.Join(t.TempDir(), "m.wasm")
	if err := os.WriteFile(b.program, module, 0o600); err != nil {
		t.Fatal(err)
	}
	j := b.newJob(t, 1, 1, nil)
	j.spec.Programs[0].OS, j.spec.Programs[0].Arch = jobspec.WasmOS, jobspec.WasmArch
	here := &j.peers[0].launch.config
	here.Grant = g
	here.Decide = func(p2ppeer.ID, []policy.Kind) policy.Decision { return policy.Decision{Kind: policy.Wasm} }
	return j
}

// TestModuleRunsWithinTheGroupsOfItsJob, which its compiler had before.
func TestModuleRunsWithinTheGroupsOfItsJob(t *testing.T) {
	j := newModuleJob(t, idleModule(1), limits.Grant{Slot: limits.Limits{Memory: 512 << 20, CPU: 100, Processes: 100}})
	j.start()
	if e := j.links[0].exited(view.Process{}); e.Code != 0 || e.Reason != "" {
		t.Errorf("ended with %v", e)
	}
	j.stop()
}

// TestCompilerIsWithinTheLimits has a module whose compiled code is larger than any file
// of the job may be.
func TestCompilerIsWithinTheLimits(t *testing.T) {
	j := newModuleJob(t, idleModule(20_000), limits.Grant{Slot: limits.Limits{Disk: 64 << 10}})
	l := j.connect(j.peers[0])
	l.say(j.prepareMessage(0, j.reserve(j.peers[0], 1)))
	if p := await(l, (*jobpb.FromPeer).GetPrepared); !strings.Contains(p.Error, "file too large") {
		t.Errorf("prepared, %q", p.Error)
	}
	j.gone()
}
