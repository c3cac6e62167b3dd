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

// tick is the time by which each reading advances the clock.
const tick = sys.ClockResolution(time.Microsecond)

// A clock is the module's clock. Only one goroutine uses it.
type clock struct {
	start time.Time
	since time.Duration // time passed since start
}

func newClock(start time.Time) *clock { return &clock{start: start} }

// reach advances the clock to the time that Wtime has returned.
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

// sleep sleeps for ns nanoseconds, and advances the clock accordingly.
func (c *clock) sleep(ns int64) {
	time.Sleep(time.Duration(ns))
	c.pass(time.Duration(ns))
}

// pass advances the clock by the time that the module has waited.
func (c *clock) pass(d time.Duration) { c.since += max(d, 0) }

// newRandom returns random numbers that follow from seed.
func newRandom(seed string) *rand.ChaCha8 { return rand.NewChaCha8(sha256.Sum256([]byte(seed))) }

// saveState returns the state of the clock and the random numbers for a checkpoint.
func saveState(c *clock, random *rand.ChaCha8) []byte {
	b, _ := random.MarshalBinary() // never fails
	return append(binary.LittleEndian.AppendUint64(nil, uint64(c.since)), b...)
}

func restoreState(c *clock, random *rand.ChaCha8, b []byte) error {
	if len(b) < 8 {
		return errors.New("malformed state of clock and random numbers")
	}
	c.since = max(c.since, time.Duration(binary.LittleEndian.Uint64(b)))
	return random.UnmarshalBinary(b[8:])
}

// newScratch returns the file system that a module sees.
func newScratch(q quota) wazero.FSConfig {
	q.open = make(map[*file]bool)
	return wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(scratch{sysfs.DirFS(q.folder), &q}, "/")
}

// A scratch is a folder under a quota, without links that lead out of it: a module cannot create any, and staged
// files contain none.
type scratch struct {
	wsys.FS
	*quota
}

func (scratch) Symlink(string, string) wsys.Errno { return wsys.EPERM }

// environment returns the process's environment without the runner's own variables.
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
