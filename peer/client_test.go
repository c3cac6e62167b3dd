package peer

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestHomeOfAnotherUser: a control socket that may not be connected to does not mean that no peer
// is running.
func TestHomeOfAnotherUser(t *testing.T) {
	err := dialError("/home/donor/.p2pmpi", os.NewSyscallError("connect", syscall.EACCES))
	if !errors.Is(err, ErrNotAllowed) || errors.Is(err, ErrNoPeer) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v, want ErrNotAllowed", err)
	}
	if !strings.Contains(err.Error(), "/home/donor/.p2pmpi") {
		t.Errorf("%v does not name the home", err)
	}
	if err := dialError("/home/donor/.p2pmpi", syscall.ENOENT); !errors.Is(err, ErrNoPeer) {
		t.Errorf("got %v, want ErrNoPeer", err)
	}
}
