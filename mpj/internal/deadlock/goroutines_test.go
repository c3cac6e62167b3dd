package deadlock

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const inEngine = `goroutine 7 [chan receive]:
github.com/p2pmpi/p2pmpi/mpj/internal/engine.(*Engine).sleep(0xc0, 0xc1)
	/x/wait.go:1 +0x1
main.work()
	/x/main.go:1 +0x1
created by main.main in goroutine 1
	/x/main.go:2 +0x1

`

func TestIdle(t *testing.T) {
	cases := []struct {
		name, dump string
		root       uint64
		want       bool
	}{
		{"all in the engine", inEngine, 0, true},
		{"one goroutine runs", inEngine + "goroutine 1 [running]:\nmain.main()\n\t/x/main.go:1\n", 0, false},
		{"main waits for the others", inEngine + "goroutine 1 [sync.WaitGroup.Wait, 2 minutes]:\nsync.runtime_x()\n\t/x.go:1\n", 0, true},
		{"a goroutine may wait for a timer", inEngine + "goroutine 1 [chan receive]:\nmain.main()\n\t/x/main.go:1\n", 0, false},
		{"a goroutine sleeps", inEngine + "goroutine 1 [sleep]:\ntime.Sleep(0x1)\n\t/x.go:1\n", 0, false},
		{"the library reads", inEngine + "goroutine 9 [IO wait]:\nx.y()\n\t/x.go:1\ncreated by github.com/p2pmpi/p2pmpi/mpj/internal/engine.(*Engine).Accept in goroutine 4\n\t/x.go:2\n", 0, true},
		{"an example program computes", inEngine + "goroutine 9 [runnable]:\nx.y()\n\t/x.go:1\ncreated by github.com/p2pmpi/p2pmpi/examples/heat.run in goroutine 1\n\t/x.go:2\n", 0, false},
		{"another rank's child", inEngine +
			"goroutine 8 [chan receive]:\ngithub.com/p2pmpi/p2pmpi/mpj/internal/engine.(*Engine).sleep(...)\n\t/x.go:1\ngithub.com/p2pmpi/p2pmpi/mpj.runIn.func1()\n\t/x.go:1\ncreated by sync.(*WaitGroup).Go in goroutine 1\n\t/x.go:2\n\n" +
			"goroutine 9 [running]:\nmain.f()\n\t/x.go:1\ncreated by main.g in goroutine 8\n\t/x.go:2\n", 7, true},
		{"a goroutine of unknown origin", inEngine + "goroutine 9 [running]:\nmain.f()\n\t/x.go:1\ncreated by main.g in goroutine 88\n\t/x.go:2\n", 7, false},
		{"a child of the rank", inEngine + "goroutine 9 [running]:\nmain.f()\n\t/x.go:1\ncreated by main.g in goroutine 7\n\t/x.go:2\n", 7, false},
		{"no dump", "panic: x", 0, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := Idle([]byte(c.dump), c.root); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestIdleReadsTheRuntime checks that the runtime still writes dumps in the format that this
// package parses.
func TestIdleReadsTheRuntime(t *testing.T) {
	var wait sync.WaitGroup
	wait.Add(1)
	number := make(chan uint64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		own := make([]byte, 100)
		number <- Current(own[:runtime.Stack(own, false)])
		wait.Wait()
	}()
	id := <-number
	dump := make([]byte, 1<<20)
	deadline := time.Now().Add(10 * time.Second)
	for !Idle(dump[:runtime.Stack(dump, true)], id) {
		if time.Now().After(deadline) {
			t.Fatalf("goroutine %d is not idle in:\n%s", id, dump[:runtime.Stack(dump, true)])
		}
		runtime.Gosched()
	}
	own := make([]byte, 100)
	if here := Current(own[:runtime.Stack(own, false)]); Idle(dump[:runtime.Stack(dump, true)], here) {
		t.Error("a running goroutine is reported idle")
	}
	wait.Done()
	<-done
}

// FuzzIdle checks that arbitrary dumps are harmless, because the program chooses the names of its
// functions.
func FuzzIdle(f *testing.F) {
	f.Add(inEngine, uint64(7))
	f.Add("goroutine 1 [running]:\n", uint64(0))
	f.Add(strings.Repeat("\n", 5), uint64(1))
	f.Fuzz(func(t *testing.T, dump string, root uint64) { Idle([]byte(dump), root) })
}
