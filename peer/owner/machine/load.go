package machine

import (
	"fmt"
	"math"
	"os"
	"runtime"
)

// Load returns the average number of runnable processes per processor over the last minute, or 0 if the system
// does not report it.
func Load() float64 {
	data, err := os.ReadFile("/proc/loadavg") // exists only on Linux
	if err != nil {
		return 0
	}
	return parseLoad(string(data), runtime.NumCPU())
}

func parseLoad(loadavg string, processors int) float64 {
	var running float64
	if _, err := fmt.Sscan(loadavg, &running); err != nil || !(running >= 0 && running < math.MaxInt32) {
		return 0
	}
	return running / float64(processors)
}
