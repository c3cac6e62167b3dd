package proc

import (
	"os"
	"syscall"
	"testing"
)

// roleVariable makes this binary a program that the tests inspect, or that inspects for them. Its value
// names the role.
const roleVariable = "PROC_TEST_ROLE"

var roles = make(map[string]func(args []string) int)

func TestMain(m *testing.M) {
	if role := roles[os.Getenv(roleVariable)]; role != nil {
		syscall.Exit(role(os.Args[1:])) // os.Exit takes a second under the race detector
	}
	os.Exit(m.Run())
}
