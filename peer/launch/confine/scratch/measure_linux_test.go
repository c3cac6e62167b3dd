package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// asAUser runs do as an ordinary user, who cannot enter folders without permissions.
func asAUser(do func()) {
	done := make(chan struct{})
	go func() { // ends with do
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		if os.Getuid() == 0 {
			unix.SetfsuidRetUid(nobody)
		}
		do()
	}()
	<-done
}

func measureAsAUser(folder string) (n int64, err error) {
	asAUser(func() { n, err = Measure(folder, ruler) })
	return n, err
}

const nobody = 65534

// userFolder returns a folder of an ordinary user, with a file three levels down.
func userFolder(t *testing.T, size int) (folder string, all []string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "measure")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, d := range all {
			os.Chmod(d, 0o700)
		}
		os.RemoveAll(folder)
	})
	all = []string{folder}
	for _, name := range []string{"a", "b"} {
		all = append(all, filepath.Join(all[len(all)-1], name))
	}
	file := filepath.Join(all[2], "file")
	if err := errors.Join(os.MkdirAll(all[2], 0o700), os.WriteFile(file, make([]byte, size), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range append(all, file) {
		if err := os.Lchown(path, nobody, nobody); os.Getuid() == 0 && err != nil {
			t.Fatal(err)
		}
	}
	return folder, all
}

// TestFoldersWithoutPermissionsAreMeasured checks folders without some or all permissions.
func TestFoldersWithoutPermissionsAreMeasured(t *testing.T) {
	const size = 64 << 10
	for _, mode := range []fs.FileMode{0, 0o400, 0o300, 0o200, 0o100, 0o700} {
		folder, all := userFolder(t, size)
		for i := range all {
			if err := os.Chmod(all[len(all)-1-i], mode); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := measureAsAUser(folder); err != nil || n < size+3*leastEntry || n >= 2*size {
			t.Errorf("mode %v: got %d, %v; want the file and its folders", mode, n, err)
		}
	}
}

// TestFolderWithChangingPermissions checks that the measurement of such a folder is correct, or an error.
func TestFolderWithChangingPermissions(t *testing.T) {
	const size = 64 << 10
	folder, all := userFolder(t, size)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // until stop
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				os.Chmod(all[1], 0) // even while the folder below it is measured
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for range 200 {
		if n, err := measureAsAUser(folder); err == nil && n < size || err != nil && !errors.Is(err, fs.ErrPermission) {
			t.Fatalf("got %d, %v; want the file's size, or a permission error", n, err)
		}
	}
}
