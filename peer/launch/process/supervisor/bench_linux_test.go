package supervisor

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/confine/sandbox"
)

// BenchmarkSandbox measures the cost of the sandbox for a program: the time until it runs, and the memory of
// its supervisor. Runs with and without the sandbox alternate, so that other load on the machine affects
// both.
func BenchmarkSandbox(b *testing.B) {
	kinds := []struct {
		name  string
		means sandbox.Means
		took  []time.Duration
		rss   []int // in KiB
		own   []int // the part that is not the program's file
	}{{name: "within"}, {name: "without"}}
	kinds[0].means = available()
	for b.Loop() {
		for i := range kinds {
			k := &kinds[i]
			begun := time.Now()
			r := runWithin(b, k.means, "sleep")
			readLine(b, r.stdout)
			k.took = append(k.took, time.Since(begun))
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
			if err != nil {
				b.Fatal(err)
			}
			k.rss = append(k.rss, kib(status, "VmRSS:"))
			k.own = append(k.own, kib(status, "RssAnon:"))
			r.Close()
		}
	}
	for _, k := range kinds {
		b.ReportMetric(median(k.took).Seconds()*1000, "ms-"+k.name)
		b.ReportMetric(float64(median(k.rss))/1024, "MiB-"+k.name)
		b.ReportMetric(float64(median(k.own))/1024, "own-MiB-"+k.name)
	}
}

func median[T cmp.Ordered](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}

// kib returns a memory value from a process's status file, in KiB.
func kib(status []byte, name string) int {
	_, rest, _ := bytes.Cut(status, []byte("\n"+name))
	n, _ := strconv.Atoi(string(bytes.Fields(rest)[0]))
	return n
}
