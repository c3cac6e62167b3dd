// Package skip is of tests that cannot be done on a machine.
package skip

import (
	"os"
	"testing"
)

// Forbidden reports whether nothing may be skipped for what a machine lacks: where CI is set, nothing
// passes because it was not tried.
func Forbidden() bool { return os.Getenv("CI") != "" }

// Lacks skips a test that needs what is not here, or fails it where that is forbidden.
func Lacks(t testing.TB, need any) {
	t.Helper()
	if Forbidden() {
		t.Fatalf("this needs %v; where CI is set it is not skipped", need)
	}
	t.Skipf("this needs %v", need)
}
