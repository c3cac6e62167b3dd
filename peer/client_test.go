package peer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/viper"

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

// TestConfigurationWithoutPermission checks that a home without permission to enter counts as one
// without a configuration file, so that a request to its peer ends with ErrNotAllowed. An unreadable file
// in an accessible home is an error.
func TestConfigurationWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may enter every home: run it as another user")
	}
	home := t.TempDir()
	file := filepath.Join(home, "config.yaml")
	if err := os.WriteFile(file, []byte("slots: 1\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := readFile(viper.New(), "", home); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file that may not be read: got %v, want an error that names it", err)
	}
	if err := os.Chmod(home, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(home, 0o700)
	if err := readFile(viper.New(), "", home); err != nil {
		t.Errorf("a home that may not be entered: %v", err)
	}
}
