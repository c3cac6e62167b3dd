package submit

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/mpj"
	"github.com/p2pmpi/p2pmpi/peer/launch"
)

// TestMain makes this binary the supervisor and the program of peers that really launch processes.
func TestMain(m *testing.M) {
	// syscall.Exit, because os.Exit with the race detector takes a second.
	if status, ours := launch.Supervise(); ours {
		syscall.Exit(status)
	}
	if os.Getenv(proclink.FDVariable) != "" {
		syscall.Exit(program())
	}
	goleak.VerifyTestMain(m,
		// goroutines of go-libp2p that live as long as the process
		goleak.IgnoreAnyFunction("github.com/ipfs/go-log/v2/writer.(*MirrorWriter).logRoutine"),
		goleak.IgnoreAnyFunction("go.opencensus.io/stats/view.(*worker).start"),
	)
}

// program sums up all ranks and the staged number, and writes two files: "log" differs between
// ranks, and "sum" is the same at all.
func program() int {
	world, err := mpj.Init(context.Background())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	staged, err := os.ReadFile("in/number")
	if err != nil {
		world.Abort(9, err.Error())
	}
	var number int
	fmt.Sscan(string(staged), &number)
	sum := make([]int, 1)
	if err := mpj.Allreduce(world.Comm, []int{number + world.Rank()}, sum, mpj.Sum); err != nil {
		world.Abort(8, err.Error())
	}
	out := bufio.NewWriter(os.Stdout)
	for line := range 3 {
		fmt.Fprintf(out, "rank %d line %d sum %d\n", world.Rank(), line, sum[0])
	}
	out.Flush()
	os.WriteFile("log", fmt.Appendf(nil, "rank %d", world.Rank()), 0o600)
	os.WriteFile("sum", fmt.Append(nil, sum[0]), 0o600)
	if err := world.Finalize(); err != nil {
		return 1
	}
	return 0
}

// selfScript returns a small script that executes this binary, so that jobs stage a hundred bytes
// instead of a hundred megabytes.
func selfScript(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return script(t, "exec "+self)
}

// script writes a shell script and returns its path.
func script(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prog")
	text := "#!/bin/sh\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}
