// Flood is a program whose rank 0 sends much more data than all buffers can hold. Rank 1 receives
// nothing at first, and then receives everything. Both ranks fail if their memory use grows too
// much.
//
//	flood [-mib M] [-quiet D]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/p2pmpi/p2pmpi/mpj"
)

var (
	mib   = flag.Int("mib", 512, "MiB to send")
	quiet = flag.Duration("quiet", 3*time.Second, "time during which rank 1 does not receive")
)

const (
	words = 8 << 10   // numbers in a message
	most  = 160 << 20 // bytes of memory
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "flood:", err)
		os.Exit(1)
	}
}

func run() error {
	world, err := mpj.Init(context.Background())
	if err != nil {
		return err
	}
	messages := *mib << 20 / (8 * words)
	if world.Rank() == 0 {
		err = send(world, messages)
	} else {
		err = receive(world, messages)
	}
	if err != nil {
		return err
	}
	return world.Finalize()
}

func send(world *mpj.World, messages int) error {
	fmt.Println("rank 0 sends")
	buf := make([]int64, words)
	for i := range messages {
		buf[0], buf[words-1] = int64(i), int64(i)
		if err := mpj.Send(world.Comm, buf, 1, 0); err != nil {
			return err
		}
		if i%256 == 0 {
			if err := checkMemory(); err != nil {
				return err
			}
		}
	}
	return nil
}

func receive(world *mpj.World, messages int) error {
	time.Sleep(*quiet / 2)
	if err := checkMemory(); err != nil { // later, another replica may receive already while this one is behind
		return err
	}
	time.Sleep(*quiet / 2)
	fmt.Println("rank 1 receives")
	buf, sum := make([]int64, words), int64(0)
	for i := range messages {
		if _, err := mpj.Recv(world.Comm, buf, 0, 0); err != nil {
			return err
		}
		if buf[0] != int64(i) {
			return fmt.Errorf("got message %d, want %d", buf[0], i)
		}
		sum += buf[words-1]
	}
	fmt.Println("rank 1 sum", sum)
	return nil
}

// checkMemory returns an error if the heap holds more than the library's limits, plus as much again
// for garbage that has not been collected.
func checkMemory() error {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapInuse > most {
		runtime.GC()
		runtime.ReadMemStats(&m)
	}
	if m.HeapInuse > most {
		return fmt.Errorf("%d MiB of memory are in use", m.HeapInuse>>20)
	}
	return nil
}
