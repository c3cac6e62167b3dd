package proc

import (
	"os"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

func TestStarvedProcesses(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, tt := range []struct {
		name             string
		took, ran, waits time.Duration
		want             bool
	}{
		{"starved", s, 3 * ms, 997 * ms, true},
		{"two threads, starved", s, 6 * ms, 2 * s, true},
		{"stopped, or waits for something else", s, 0, 0, false},
		{"has a tenth of a processor", s, 100 * ms, 900 * ms, false},
		{"computes", s, s, 0, false},
		{"runs now and then", s, ms, ms, false},
		{"a thread has ended", s, -s, -s, false},
	} {
		begin := CPUStats{At: time.Now(), Ran: time.Minute, Waited: time.Hour}
		end := CPUStats{At: begin.At.Add(tt.took), Ran: begin.Ran + tt.ran, Waited: begin.Waited + tt.waits}
		if got := end.Starved(begin); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

func TestWaitSince(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, tt := range []struct {
		name               string
		ran, waited, lacks time.Duration // within one second
	}{
		{"starved", 0, s, s},
		{"stopped, or waits for something else", 0, 0, 0},
		{"computes on a processor of its own", s, 0, 0},
		{"has a tenth of a processor", 100 * ms, 900 * ms, 900 * ms},
		{"two threads, a tenth of a processor", 100 * ms, 1900 * ms, 900 * ms},
		{"eight threads on two processors", 2 * s, 6 * s, 0},
		{"needs little, and waits for it", 10 * ms, 300 * ms, 300 * ms},
		{"a thread has ended", -s, -s, 0},
	} {
		begin := CPUStats{At: time.Now(), Ran: time.Minute, Waited: time.Hour}
		end := CPUStats{At: begin.At.Add(s), Ran: begin.Ran + tt.ran, Waited: begin.Waited + tt.waited}
		if got := end.WaitSince(begin); got != tt.lacks {
			t.Errorf("%s: waited %v, want %v", tt.name, got, tt.lacks)
		}
	}
}

// TestTimeSlicesAreCounted measures this process, which computes.
func TestTimeSlicesAreCounted(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		skip.Lacks(t, "a kernel with /proc/PID/schedstat")
	}
	before := CPUStatsOf([]int{os.Getpid()}, time.Now())
	for late := time.Now().Add(20 * time.Second); ; {
		if now := CPUStatsOf([]int{os.Getpid()}, time.Now()); now.Ran-before.Ran > 10*time.Millisecond {
			break
		}
		if time.Now().After(late) {
			t.Fatal("no processor time counted for a busy process")
		}
	}
	if none := CPUStatsOf([]int{1 << 30}, time.Now()); none.Ran != 0 || none.Waited != 0 {
		t.Errorf("a process that does not exist has %+v", none)
	}
}
