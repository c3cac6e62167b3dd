package wasm

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// A collector has the runner's garbage collected, but only while the module is in a call.
// A module's machine code cannot be interrupted: a collection that began beside it would
// stop everything else in the runner until the module's next call, and the peer would take a module
// that computes for long for one that hangs.
type collector struct {
	computing sync.Mutex // the module's code runs
	percent   int        // Go's own, which is as it was in the end
	stop      chan struct{}
	stopped   sync.WaitGroup
}

const (
	// often is how often it looks how much garbage there may be.
	often = 50 * time.Millisecond
	// grown is by how many bytes what is allocated has grown when it is worth it. Go
	// collects by itself at the limit of the runner's memory only.
	grown = 16 << 20
)

// startCollector returns a collector for a module that is about to run.
func startCollector() *collector {
	c := &collector{percent: debug.SetGCPercent(-1), stop: make(chan struct{})}
	runtime.GC()
	c.computing.Lock()
	live := allocated()
	c.stopped.Go(func() { c.run(live) }) // until end
	return c
}

// outside makes a call of the module.
func (c *collector) outside(call func()) {
	c.computing.Unlock()
	defer c.computing.Lock()
	call()
}

// end ends it, in a call or after the module.
func (c *collector) end() {
	c.computing.Unlock()
	close(c.stop)
	c.stopped.Wait()
	debug.SetGCPercent(c.percent)
}

// run collects whenever much has come to what is live.
func (c *collector) run(live uint64) {
	tick := time.NewTicker(often)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-tick.C:
		}
		if allocated() < live+grown {
			continue
		}
		c.computing.Lock()
		runtime.GC()
		c.computing.Unlock()
		live = allocated()
	}
}

// allocated returns the bytes of objects that are not known to be garbage.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
