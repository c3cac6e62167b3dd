package supervisor

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/confine/sandbox"
)

// The stage's ends of two pipes to its supervisor. Both are closed on exec. If failure ends without any
// output, the program runs. The stage reads its order from the other pipe.
const (
	failureFD = 4 + iota
	orderFD
)

// stage runs between fork and execve, as the process that becomes the program.
func stage() int {
	runtime.LockOSThread() // confine may restrict only this thread, which must also call execve
	failure := os.NewFile(failureFD, "failure")
	syscall.CloseOnExec(failureFD)
	syscall.CloseOnExec(orderFD)
	var o order
	if err := json.NewDecoder(os.NewFile(orderFD, "order")).Decode(&o); err != nil {
		fmt.Fprintf(failure, "no program to run: %v", err)
		return 1
	}
	if o.Probe {
		json.NewEncoder(failure).Encode(sandbox.Try(o.Plan))
		return 0
	}
	if err := confine(o.Plan, o.Limits); err != nil {
		fmt.Fprintf(failure, "confine: %v", err)
		return 1
	}
	program := o.Plan.Executable()
	fmt.Fprint(failure, execute(program, append([]string{cmp.Or(o.As, program)}, o.Args...)))
	return 1
}

// busyTimeout is how long execute waits for a file that is still open for writing somewhere.
const busyTimeout = 5 * time.Second

// execute becomes the program, or returns an error. A peer that forks another child while it writes the
// program lends that child the open file until its exec (golang.org/issue/22315), so execute retries a busy
// file.
func execute(program string, argv []string) error {
	for end := time.Now().Add(busyTimeout); ; time.Sleep(10 * time.Millisecond) {
		err := syscall.Exec(program, argv, os.Environ())
		if !errors.Is(err, syscall.ETXTBSY) || time.Now().After(end) {
			return fmt.Errorf("execute %s: %w", program, err)
		}
	}
}
