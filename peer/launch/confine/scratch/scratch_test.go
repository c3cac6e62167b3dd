package scratch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

func newJob(t *testing.T) (Job, string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "scratch")
	j := At(root, "j")
	if err := j.Make(); err != nil {
		t.Fatal(err)
	}
	return j, root
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestLastProcessRemovesTheJobsFolder(t *testing.T) {
	j, root := newJob(t)
	a, b := view.Process{Rank: 0}, view.Process{Rank: 1}
	for _, p := range []view.Process{a, b} {
		if err := j.MakeProcess(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveProcess(j.Process(a)); err != nil || exists(j.Process(a)) || !exists(j.Process(b)) || !exists(j.Program()) {
		t.Errorf("after the first: %v", err)
	}
	if err := RemoveProcess(j.Process(b)); err != nil || exists(string(j)) || !exists(root) {
		t.Errorf("after the last: %v", err)
	}
}

func TestS4FilesOfAProcessAreRemoved(t *testing.T) {
	j, root := newJob(t)
	p := view.Process{}
	if err := j.MakeProcess(p); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(root, "..", "kept")
	if err := os.WriteFile(outside, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	deep := filepath.Join(j.Process(p), "a", "b")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(deep, "link")); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{deep, filepath.Dir(deep)} {
		if err := os.Chmod(d, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Remove(); err != nil || exists(string(j)) {
		t.Errorf("job's folder is still there: %v", err)
	}
	if !exists(outside) {
		t.Error("a symbolic link led out")
	}
}

func TestTwoJobsNeverShareAFolder(t *testing.T) {
	j, root := newJob(t)
	if err := j.Make(); err == nil {
		t.Error("the same folder was made twice")
	}
	if err := SetAside(root); err != nil {
		t.Fatal(err)
	}
	if err := j.Make(); err != nil {
		t.Errorf("after SetAside: %v", err)
	}
	if err := RemoveStale(t.Context(), root); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) != 1 || !exists(string(j)) {
		t.Errorf("after RemoveStale: %v, %v", left, err)
	}
}

func TestRemoveStaleWithoutScratch(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	if err := errors.Join(SetAside(none), RemoveStale(t.Context(), none)); err != nil {
		t.Error(err)
	}
}

// TestRemovalOfAGrowingFolderTimesOut checks that removal checks the time after a number of names, not only
// at the end of a folder. It also stops when its context ends.
func TestRemovalOfAGrowingFolderTimesOut(t *testing.T) {
	skip.Long(t)
	for name, c := range map[string]struct {
		ctx   func() context.Context
		takes time.Duration // time between two calls of the clock
	}{
		"late":   {context.Background, maxRemoval / 2},
		"closed": {func() context.Context { ctx, cancel := context.WithCancel(context.Background()); cancel(); return ctx }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			made := 0
			more := func() error {
				made++
				return os.WriteFile(filepath.Join(dir, strconv.Itoa(made)), nil, 0o600)
			}
			for range 8 * portion {
				if err := more(); err != nil {
					t.Fatal(err)
				}
			}
			now, taken := time.Unix(1000, 0), 0
			late := removalTimeout(c.ctx(), func() time.Time { now = now.Add(c.takes); return now })
			err = each(root, ".", late, func(name string) error {
				taken++
				return errors.Join(root.Remove(name), more())
			})
			if err == nil || taken > 4*portion {
				t.Errorf("%d names were taken: %v", taken, err)
			}
		})
	}
}

// TestDeepFoldersAreRemoved checks that deep folders are removed with few descriptors, although some deny
// access to their owner.
func TestDeepFoldersAreRemoved(t *testing.T) {
	const depth, most = 300, 64
	j, root := newJob(t)
	p := view.Process{}
	if err := j.MakeProcess(p); err != nil {
		t.Fatal(err)
	}
	at, err := os.OpenRoot(j.Process(p))
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		name := strings.Repeat("n", 200)
		if err := errors.Join(at.WriteFile("file", nil, 0o600), at.Mkdir("beside", 0), at.Mkdir(name, 0o700)); err != nil {
			t.Fatal(err)
		}
		next, err := at.OpenRoot(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(at.Chmod(".", 0o500), at.Close()); err != nil {
			t.Fatal(err)
		}
		at = next
	}
	at.Close()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = most
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	err = errors.Join(SetAside(root), RemoveStale(t.Context(), root))
	if err := errors.Join(err, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before)); err != nil || exists(string(j)) {
		t.Errorf("job's folder is still there: %v", err)
	}
}
