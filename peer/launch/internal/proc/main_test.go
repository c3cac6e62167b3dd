package proc

import (
	"os"
	"syscall"
	"testing"
)

// roleVariable makes this binary a program that the tests look at, or one that looks in their place: it names
// which.
const roleVariable = "PROC_TEST_ROLE"

var roles = make(map[string]func(args []string) int)

func TestMain(m *testing.M) {
	if role := roles[os.Getenv(roleVariable)]; role != nil {
		syscall.Exit(role(os.Args[1:])) // os.Exit of the race detector takes a second
	}
	os.Exit(m.Run())
}
