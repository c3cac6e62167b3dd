package peer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/p2pmpi/p2pmpi/discovery"
)

// A HomeError means that a home cannot be used; the owner has to fix it.
type HomeError struct {
	Home string
	Err  error
}

// Error names the home and the cause.
func (e *HomeError) Error() string { return fmt.Sprintf("home %s: %v", e.Home, e.Err) }

// Unwrap returns the cause.
func (e *HomeError) Unwrap() error { return e.Err }

// A RunningError means that a peer already runs on the home.
type RunningError struct {
	Home string
	Peer string // such as "12D3Koo... (process 4711)"; empty while that peer starts
}

// Error names the home and the running peer.
func (e *RunningError) Error() string {
	if e.Peer == "" {
		return fmt.Sprintf("a peer is already running on home %s", e.Home)
	}
	return fmt.Sprintf("peer %s is already running on home %s", e.Peer, e.Home)
}

// A CopyError means that another peer has the identity in a home: one of the two homes is a copy of the
// other.
type CopyError struct {
	Home string
	Err  *discovery.DuplicateError
}

// Error names the home and the location of the other peer.
func (e *CopyError) Error() string {
	return fmt.Sprintf("home %s is a copy of one that is in use: %v", e.Home, e.Err)
}

// Unwrap returns the cause.
func (e *CopyError) Unwrap() error { return e.Err }

// home is the folder of one peer. Its methods return the paths of the files in it.
type home string

func (h home) identity() string { return filepath.Join(string(h), "identity") }
func (h home) lock() string     { return filepath.Join(string(h), "lock") }
func (h home) socket() string   { return filepath.Join(string(h), "control.sock") }
func (h home) history() string  { return filepath.Join(string(h), "history") }
func (h home) journal() string  { return filepath.Join(string(h), "journal") }
func (h home) speed() string    { return filepath.Join(string(h), "speed") }
func (h home) ports() string    { return filepath.Join(string(h), "ports") }
func (h home) cache() string    { return filepath.Join(string(h), "cache") }
func (h home) password() string { return filepath.Join(string(h), "http-password") }

// PeersOf returns the file in which a home keeps its known peers of a network.
func PeersOf(dir, network string) string { return filepath.Join(dir, "peers-"+network+".json") }

// JobsOf returns the folder in which a home keeps the jobs that p2prun can resume.
func JobsOf(dir string) string { return filepath.Join(dir, "jobs") }

// maxSocketPath is the longest path of a Unix socket that works on every system, without the terminating
// zero.
const maxSocketPath = 103

// openHome creates the folder if necessary and checks that a peer can use it. Other users get no access,
// because the folder holds a private key.
func openHome(dir string) (home, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", &HomeError{dir, err}
	}
	h := home(abs)
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return "", &HomeError{abs, plainPathError(err)}
	}
	if len(h.socket()) > maxSocketPath {
		return "", &HomeError{abs, fmt.Errorf("its name is too long for a control socket: %d bytes, at most %d",
			len(abs), maxSocketPath-len("/control.sock"))}
	}
	probe, err := os.CreateTemp(abs, ".probe")
	if err != nil {
		return "", &HomeError{abs, fmt.Errorf("cannot write in it: %w", plainPathError(err))}
	}
	probe.Close()
	os.Remove(probe.Name())
	return h, nil
}

// plainPathError formats an *fs.PathError for use in a HomeError.
func plainPathError(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("%s %s: %w", path.Op, path.Path, path.Err)
	}
	return err
}

// A homeLock is held while a peer runs. The kernel releases it when the process ends for any reason. Its
// descriptor is closed on exec, like all of Go's, so no process of a job inherits it.
type homeLock struct{ file *flock.Flock }

// lockHome takes the lock and removes the socket of a peer that was killed.
func lockHome(h home) (*homeLock, error) {
	l := &homeLock{flock.New(h.lock())}
	ok, err := l.file.TryLock()
	if err != nil {
		return nil, &HomeError{string(h), fmt.Errorf("lock: %w", err)}
	}
	if !ok {
		who, _ := os.ReadFile(h.lock())
		return nil, &RunningError{Home: string(h), Peer: strings.TrimSpace(string(who))}
	}
	if err := os.Remove(h.socket()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.release()
		return nil, &HomeError{string(h), plainPathError(err)}
	}
	return l, nil
}

// describe writes the peer ID and process ID of the holder into the lock file.
func (l *homeLock) describe(peerID string) error {
	text := fmt.Sprintf("%s (process %d)\n", peerID, os.Getpid())
	return os.WriteFile(l.file.Path(), []byte(text), 0o600)
}

func (l *homeLock) release() error {
	os.Truncate(l.file.Path(), 0) // if this fails, the file still names the last holder
	return l.file.Unlock()
}

// lockPoll is the interval at which AwaitGone tries the lock, since file locks have no notification.
const lockPoll = 10 * time.Millisecond

// AwaitGone returns when no peer runs on the home dir, or when ctx ends.
func AwaitGone(ctx context.Context, dir string) error {
	l := flock.New(home(dir).lock())
	ok, err := l.TryRLockContext(ctx, lockPoll)
	if ok {
		err = l.Unlock()
	}
	if err != nil {
		return fmt.Errorf("wait for the peer on home %s to stop: %w", dir, err)
	}
	return nil
}
