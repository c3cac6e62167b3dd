package scratch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// programFolder is the folder of a job's executable. No process has this name.
const programFolder = "program"

// A Job is the path of the folder of one job on this peer.
type Job string

// At returns the folder of a job below root. Make creates it.
func At(root, job string) Job { return Job(filepath.Join(root, job)) }

// Make creates the job's folder. It must not exist yet: two jobs with the same name would share files.
func (j Job) Make() error {
	err := os.MkdirAll(filepath.Dir(string(j)), 0o700)
	for _, folder := range []string{string(j), j.Program()} {
		if err == nil {
			err = os.Mkdir(folder, 0o700)
		}
	}
	if err != nil {
		return fmt.Errorf("make scratch folder: %w", err)
	}
	return nil
}

// Program returns the folder of the executable.
func (j Job) Program() string { return filepath.Join(string(j), programFolder) }

// Process returns the folder of one process. MakeProcess creates it.
func (j Job) Process(p view.Process) string { return filepath.Join(string(j), p.String()) }

// Compile returns the working folder of the compiler of a module.
func (j Job) Compile() string { return filepath.Join(string(j), "compile") }

// MakeProcess creates the folder of one process.
func (j Job) MakeProcess(p view.Process) error {
	if err := os.Mkdir(j.Process(p), 0o700); err != nil {
		return fmt.Errorf("make scratch folder: %w", err)
	}
	return nil
}

// RemoveProcess removes the folder of one process.
func (j Job) RemoveProcess(p view.Process) error { return remove(context.Background(), j.Process(p)) }

// Remove removes the job's folder with its contents.
func (j Job) Remove() error { return remove(context.Background(), string(j)) }

// RemoveProcess removes the folder of one process and, with the last one, that of its job. Supervisors call
// it after their peer is gone.
func RemoveProcess(folder string) error {
	err := remove(context.Background(), folder)
	job := filepath.Dir(folder)
	rest, readErr := os.ReadDir(job)
	if readErr != nil || len(rest) > 1 || len(rest) == 1 && rest[0].Name() != programFolder {
		return err // other processes are still there, or were faster
	}
	return errors.Join(err, remove(context.Background(), job))
}

// stalePrefix is the prefix of folders that were set aside. No job has such a name.
const stalePrefix = ".stale-"

// SetAside renames every job folder below root, so that it does not obstruct new jobs. Such folders remain
// if a peer was killed together with its supervisors. SetAside is fast whatever they contain; RemoveStale
// removes them.
func SetAside(root string) error {
	jobs, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set stale scratch folders aside: %w", err)
	}
	var errs []error
	for _, j := range jobs {
		if !strings.HasPrefix(j.Name(), stalePrefix) {
			errs = append(errs, os.Rename(filepath.Join(root, j.Name()), filepath.Join(root, stalePrefix+rand.Text())))
		}
	}
	return errors.Join(errs...)
}

// RemoveStale removes the folders that were set aside below root, until ctx ends. The next call removes the
// rest.
func RemoveStale(ctx context.Context, root string) error {
	jobs, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove stale scratch folders: %w", err)
	}
	var errs []error
	for _, j := range jobs {
		if strings.HasPrefix(j.Name(), stalePrefix) && ctx.Err() == nil {
			errs = append(errs, remove(ctx, filepath.Join(root, j.Name())))
		}
	}
	return errors.Join(errs...)
}
