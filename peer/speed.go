package peer

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/klauspost/cpuid/v2"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
)

// A speed is how fast one processor of this machine is.
type speed struct {
	Processor string `json:"processor"` // that was measured
	Mflops    int    `json:"mflops"`    // millions of floating-point operations per second
}

// loadSpeed measures the processor, and returns the best that was ever measured of it:
// slower ones were of a machine with other work to do, which its load tells. file
// keeps it across restarts; one that makes no sense, or is of another
// processor, is begun anew.
func loadSpeed(file string) (int, error) {
	now := speed{cpuid.CPU.BrandName, measureMflops()}
	var kept speed
	data, err := os.ReadFile(file)
	if err == nil && json.Unmarshal(data, &kept) == nil && kept.Processor == now.Processor && kept.Mflops >= now.Mflops {
		return kept.Mflops, nil
	}
	if data, err = json.Marshal(now); err == nil {
		err = atomicfile.Write(file, append(data, '\n'))
	}
	if err != nil {
		return now.Mflops, fmt.Errorf("keep the processor's speed: %w", err)
	}
	return now.Mflops, nil
}

const (
	speedOrder  = 64 // of the matrices: they fit into any cache
	speedRounds = 12 // products timed, some milliseconds in all; the best counts
)

// measureMflops times the product of two small matrices: multiplications, additions and
// memory, as in the programs that run here, and in Go's code for this processor.
func measureMflops() int {
	var a, b, c [speedOrder][speedOrder]float64
	for i := range speedOrder {
		for j := range speedOrder {
			a[i][j], b[i][j] = float64(i+j), float64(i-j)
		}
	}
	var best time.Duration
	for range speedRounds {
		start := time.Now()
		multiply(&a, &b, &c)
		if took := time.Since(start); best == 0 || took < best {
			best = took
		}
	}
	const operations = 2 * speedOrder * speedOrder * speedOrder
	return int(operations * 1000 / max(best.Nanoseconds(), 1))
}

// multiply adds a times b to c.
func multiply(a, b, c *[speedOrder][speedOrder]float64) {
	for i := range c {
		for k := range b {
			f := a[i][k]
			for j := range c[i] {
				c[i][j] += f * b[k][j]
			}
		}
	}
}
