package wasm

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// A collector collects the runner's garbage, but only while the module is in a host call. A module's
// machine code cannot be interrupted. A collection during its execution would stop all other goroutines of
// the runner until the module's next call, and the peer would consider a long computation hung.
type collector struct {
	computing sync.Mutex // held while the module's code runs
	percent   int        // original GC percentage, restored at the end
	stop      chan struct{}
	stopped   sync.WaitGroup
}

const (
	// often is the interval at which the collector checks the amount of garbage.
	often = 50 * time.Millisecond
	// grown is the growth of allocated bytes that triggers a collection. Go itself collects only at the
	// runner's memory limit.
	grown = 16 << 20
)

// startCollector returns a collector for a module that is about to run.
func startCollector() *collector {
	c := &collector{percent: debug.SetGCPercent(-1), stop: make(chan struct{})}
	runtime.GC()
	c.computing.Lock()
	live := allocated()
	c.stopped.Go(func() { c.run(live) }) // ends with end
	return c
}

// outside performs a host call of the module.
func (c *collector) outside(call func()) {
	c.computing.Unlock()
	defer c.computing.Lock()
	call()
}

// end stops the collector. It is called during a host call or after the module has ended.
func (c *collector) end() {
	c.computing.Unlock()
	close(c.stop)
	c.stopped.Wait()
	debug.SetGCPercent(c.percent)
}

// run collects garbage whenever the allocated bytes have grown enough since the last collection.
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
