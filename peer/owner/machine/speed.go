package machine

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/klauspost/cpuid/v2"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
)

// A speed is the speed of one processor of this machine.
type speed struct {
	Processor string `json:"processor"` // brand name of the measured processor
	Mflops    int    `json:"mflops"`    // millions of floating-point operations per second
}

// Speed measures the processor and returns its best result so far. Lower results come from a busy
// machine, which the offer's load reports separately. file keeps the best result across restarts. Speed
// replaces it if it is invalid or belongs to another processor.
func Speed(file string) (int, error) {
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
		return now.Mflops, fmt.Errorf("save the processor's speed: %w", err)
	}
	return now.Mflops, nil
}

const (
	speedOrder  = 64 // order of the matrices, which fit into any cache
	speedRounds = 12 // number of timed products, some milliseconds in total; the fastest counts
)

// measureMflops times the product of two small matrices in Go code for this processor. Like the programs
// that run here, it uses multiplications, additions and memory.
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
