package control

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

// TestControlSocketWithoutPermission checks that a control socket without permission to connect does not
// mean that no peer is running.
func TestControlSocketWithoutPermission(t *testing.T) {
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
	err = dialError("/etc/passwd/home", os.NewSyscallError("connect", syscall.ENOTDIR))
	if _, ok := errors.AsType[*homedir.Error](err); !ok || !errors.Is(err, ErrNoPeer) {
		t.Errorf("got %v, want a homedir.Error without a peer", err)
	}
}

func TestPeerStartsAfterAKilledPeer(t *testing.T) {
	h, err := homedir.Open(shortDir(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{h.Socket(), filepath.Join(string(h), "lock")} { // as after SIGKILL
		if err := os.WriteFile(name, []byte("12D3KooX (process 1)\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := h.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	server, err := Serve(t.Context(), h.Socket(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
