package wasm

import (
	"math/rand/v2"
	"os"

	"github.com/tetratelabs/wazero"

	"github.com/p2pmpi/p2pmpi/mpj/hostcall"
)

// A Host is the environment of a module, which is the same in all engines: its role in the job, and the
// system that it sees.
type Host struct {
	args    []string
	clock   *clock
	random  *rand.ChaCha8
	process *hostcall.Process
	quota   quota
	memory  func(at, size uint32) ([]byte, bool) // access to the module's memory, set by its engine
}

func newHost(c Config, args []string) *Host {
	h := &Host{
		args: args, clock: newClock(c.Created), random: newRandom(c.Seed),
		quota: quota{folder: ".", most: c.Disk, name: c.Name, exceeded: endModule},
	}
	h.process = hostcall.New(hostcall.Config{
		Memory:  func(at, size uint32) ([]byte, bool) { return h.memory(at, size) },
		Told:    h.clock.reach,
		Waited:  h.clock.pass,
		Lost:    lost,
		Save:    func() []byte { return saveState(h.clock, h.random) },
		Restore: func(b []byte) error { return restoreState(h.clock, h.random, b) },
	})
	return h
}

func (h *Host) close() { h.process.Close() }

// system returns the configuration of the system that a module sees. outside performs calls that take long.
func (h *Host) system(outside func(call func())) wazero.ModuleConfig {
	config := wazero.NewModuleConfig().WithName("").WithArgs(h.args...).
		WithStdout(os.Stdout).WithStderr(os.Stderr).
		WithFSConfig(newScratch(h.quota)).WithRandSource(h.random).
		WithWalltime(h.clock.walltime, tick).WithNanotime(h.clock.nanotime, tick).
		WithNanosleep(func(ns int64) { outside(func() { h.clock.sleep(ns) }) })
	for _, v := range environment() {
		config = config.WithEnv(v[0], v[1])
	}
	return config
}
