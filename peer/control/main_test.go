package control

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// deadline bounds the waits of a test. It is far above the usual duration.
const deadline = 20 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shortDir returns a home whose path is short enough for a socket, independent of the test's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "peer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
