package peer

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// asNobody calls f on a thread that has another user's ID, and terminates that thread afterwards.
func asNobody(t *testing.T, f func() error) error {
	t.Helper()
	const nobody = 65534
	done := make(chan error)
	go func() { // ends with f, and terminates its thread
		runtime.LockOSThread()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			done <- errno
			return
		}
		done <- f()
	}()
	return <-done
}

// TestControlSocketChecksTheClientsUser checks the client's user in a home and socket that are open to all
// users.
func TestControlSocketChecksTheClientsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		skip.Lacks(t, "root, to act as another user")
	}
	p := boot(t, nil)
	for dir, mode := range map[string]os.FileMode{string(p.home): 0o755, p.home.Socket(): 0o666} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	ask := func() (answer string, err error) {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return "", err
		}
		defer unix.Close(fd)
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: p.home.Socket()}); err != nil {
			return "", err
		}
		unix.Write(fd, []byte("GET /v1/status HTTP/1.0\r\n\r\n")) // the server may have closed the connection
		b := make([]byte, 12)
		n, err := unix.Read(fd, b)
		return string(b[:max(n, 0)]), err
	}
	if got, err := ask(); err != nil || got != "HTTP/1.0 200" {
		t.Errorf("the owner gets %q, %v", got, err)
	}
	var got string
	err := asNobody(t, func() error {
		got, _ = ask() // a refused client may read the end of the stream, or an error
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got != "" {
		t.Errorf("another user gets %q", got)
	}
}
