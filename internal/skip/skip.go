// Package skip decides which tests to skip: tests that need a resource that the machine lacks and, with -short,
// slow tests.
package skip

import (
	"os"
	"testing"
)

// Forbidden reports whether a test that lacks a resource must fail instead of being skipped. It returns true if
// the environment variable CI is set, so that no test passes in CI without having run.
func Forbidden() bool { return os.Getenv("CI") != "" }

// Lacks skips a test that needs a resource that the machine lacks. If Forbidden returns true, the test fails
// instead.
func Lacks(t testing.TB, need any) {
	t.Helper()
	if Forbidden() {
		t.Fatalf("this test needs %v; it is not skipped because CI is set", need)
	}
	t.Skipf("this test needs %v", need)
}

// Long skips a test with -short. It is for tests that take more than a second or two, or that wait in
// real time, because README's test command has five minutes on a loaded machine.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("this test is slow: run it without -short (make test-all)")
	}
}

// Fewer returns the number of random or enumerated cases to try: all, or with -short at most few.
func Fewer(all, few int) int {
	if testing.Short() {
		return min(all, few)
	}
	return all
}
