package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"
)

// failureFD is the stage's end of a pipe to its supervisor. It closes on exec:
// an end without a word means that the program runs.
const failureFD = 4

// stage runs between fork and execve, as the process that the program will be.
func stage() int {
	runtime.LockOSThread() // confine may restrict this thread only; it makes the execve
	failure := os.NewFile(failureFD, "failure")
	if len(os.Args) < 3 {
		fmt.Fprint(failure, "no program to run")
		return 1
	}
	syscall.CloseOnExec(failureFD)
	if err := confine(); err != nil {
		fmt.Fprintf(failure, "confine: %v", err)
		return 1
	}
	fmt.Fprint(failure, execute(os.Args[1], os.Args[2:]))
	return 1
}

// busyTimeout is how long execute waits for a file that is still open for
// writing somewhere.
const busyTimeout = 5 * time.Second

// execute becomes the program, or returns why not. A peer that forks another
// child while it writes the program lends that child the open file until its
// exec (golang.org/issue/22315), so a busy file is tried again.
func execute(program string, argv []string) error {
	for end := time.Now().Add(busyTimeout); ; time.Sleep(10 * time.Millisecond) {
		err := syscall.Exec(program, argv, os.Environ())
		if !errors.Is(err, syscall.ETXTBSY) || time.Now().After(end) {
			return fmt.Errorf("execute %s: %w", program, err)
		}
	}
}

// stageError reads what a stage that failed had to say.
func stageError(failure io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(failure, 4096))
	if err == nil && len(text) > 0 {
		err = errors.New(string(text))
	}
	return err
}
