package wasm

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	wsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/sys"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
)

// tick is by how much the clock goes on with each reading.
const tick = sys.ClockResolution(time.Microsecond)

// A clock is the module's. One goroutine uses it.
type clock struct {
	start time.Time
	since time.Duration // what has passed
}

func newClock(start time.Time) *clock { return &clock{start: start} }

// reach lets the clock go on to the time that Wtime has returned.
func (c *clock) reach(seconds float64) {
	c.since = max(c.since, time.Duration(seconds*float64(time.Second)))
}

func (c *clock) nanotime() int64 {
	c.since += time.Duration(tick)
	return int64(c.since)
}

func (c *clock) walltime() (sec int64, nsec int32) {
	t := c.start.Add(time.Duration(c.nanotime()))
	return t.Unix(), int32(t.Nanosecond())
}

// sleep takes as long as it says, and so does the clock.
func (c *clock) sleep(ns int64) {
	time.Sleep(time.Duration(ns))
	c.pass(time.Duration(ns))
}

// pass lets the clock go on by what the module has waited.
func (c *clock) pass(d time.Duration) { c.since += max(d, 0) }

// newRandom returns random numbers that follow from seed.
func newRandom(seed string) *rand.ChaCha8 { return rand.NewChaCha8(sha256.Sum256([]byte(seed))) }

// saveState says how clock and random numbers stand: whoever goes on elsewhere from a
// checkpoint goes on with them.
func saveState(c *clock, random *rand.ChaCha8) []byte {
	b, _ := random.MarshalBinary() // never fails
	return append(binary.LittleEndian.AppendUint64(nil, uint64(c.since)), b...)
}

func restoreState(c *clock, random *rand.ChaCha8, b []byte) error {
	if len(b) < 8 {
		return errors.New("malformed")
	}
	c.since = max(c.since, time.Duration(binary.LittleEndian.Uint64(b)))
	return random.UnmarshalBinary(b[8:])
}

// newScratch is all that a module sees of the file system.
func newScratch(folder string) wazero.FSConfig {
	return wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(scratch{sysfs.DirFS(folder)}, "/")
}

// A scratch is a folder without links that lead out of it: a module can make none, and
// what is staged has none.
type scratch struct{ wsys.FS }

// Symlink implements sys.FS.
func (scratch) Symlink(string, string) wsys.Errno { return wsys.EPERM }

// environment is the process's without what is the runner's own.
func environment() (out [][2]string) {
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		switch name {
		case proclink.FDVariable, "PATH":
			continue
		case "HOME", "TMPDIR", "PWD":
			value = "/"
		}
		out = append(out, [2]string{name, value})
	}
	return out
}
