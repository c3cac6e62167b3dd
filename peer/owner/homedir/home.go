package homedir

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
)

// An Error means that a home cannot be used; the owner has to fix it.
type Error struct {
	Home string
	Err  error
}

// Error names the home and the cause.
func (e *Error) Error() string { return fmt.Sprintf("home %s: %v", e.Home, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A RunningError means that a peer already runs on the home.
type RunningError struct {
	Home string
	Peer string // such as "12D3Koo... (process 4711)", or empty while that peer starts
}

// Error names the home and the running peer.
func (e *RunningError) Error() string {
	if e.Peer == "" {
		return fmt.Sprintf("a peer is already running on home %s", e.Home)
	}
	return fmt.Sprintf("peer %s is already running on home %s", e.Peer, e.Home)
}

// A Dir is the home of one peer. Its methods return the paths of the files in it.
type Dir string

// Identity returns the file with the private key.
func (d Dir) Identity() string { return d.file("identity") }

// Socket returns the file of the control socket.
func (d Dir) Socket() string { return d.file("control.sock") }

// History returns the file with the running time.
func (d Dir) History() string { return d.file("history") }

// Journal returns the file with the jobs that have run here.
func (d Dir) Journal() string { return d.file("journal") }

// Speed returns the file with the measured speed.
func (d Dir) Speed() string { return d.file("speed") }

// Ports returns the file with the listening ports.
func (d Dir) Ports() string { return d.file("ports") }

// Cache returns the folder of staged files.
func (d Dir) Cache() string { return d.file("cache") }

// Password returns the file with the password of the status page.
func (d Dir) Password() string { return d.file("http-password") }

func (d Dir) lockFile() string { return d.file("lock") }

func (d Dir) file(name string) string { return filepath.Join(string(d), name) }

// PeersOf returns the file in which a home keeps its known peers of a network.
func PeersOf(dir, network string) string { return filepath.Join(dir, "peers-"+network+".json") }

// JobsOf returns the folder in which a home keeps the jobs that p2prun can resume.
func JobsOf(dir string) string { return filepath.Join(dir, "jobs") }

// maxSocketPath is the longest path of a Unix socket that works on every system, without the terminating
// zero.
const maxSocketPath = 103

// Open creates the home dir if necessary and checks that a peer can use it. Other users get no access,
// because the folder holds a private key.
func Open(dir string) (Dir, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", &Error{dir, err}
	}
	h := Dir(abs)
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return "", &Error{abs, PlainPathError(err)}
	}
	if len(h.Socket()) > maxSocketPath {
		return "", &Error{abs, fmt.Errorf("the path is too long for a control socket: %d bytes, at most %d",
			len(abs), maxSocketPath-len("/control.sock"))}
	}
	probe, err := os.CreateTemp(abs, ".probe")
	if err != nil {
		return "", &Error{abs, fmt.Errorf("cannot write to the folder: %w", PlainPathError(err))}
	}
	probe.Close()
	os.Remove(probe.Name())
	return h, nil
}

// PlainPathError formats an *fs.PathError for use in an Error.
func PlainPathError(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("%s %s: %w", path.Op, path.Path, path.Err)
	}
	return err
}

// A Lock is held while a peer runs. The kernel releases it when the process ends for any reason. Its
// descriptor is closed on exec, like all of Go's, so no process of a job inherits it.
type Lock struct{ file *flock.Flock }

// Lock takes the lock of the home and removes the socket of a peer that was killed. The error is a
// *RunningError if a peer runs on the home.
func (d Dir) Lock() (*Lock, error) {
	l := &Lock{flock.New(d.lockFile())}
	ok, err := l.file.TryLock()
	if err != nil {
		return nil, &Error{string(d), fmt.Errorf("lock: %w", err)}
	}
	if !ok {
		who, _ := os.ReadFile(d.lockFile())
		return nil, &RunningError{Home: string(d), Peer: strings.TrimSpace(string(who))}
	}
	if err := os.Remove(d.Socket()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.Release()
		return nil, &Error{string(d), PlainPathError(err)}
	}
	return l, nil
}

// Describe writes the peer ID and process ID of the holder into the lock file.
func (l *Lock) Describe(peerID string) error {
	text := fmt.Sprintf("%s (process %d)\n", peerID, os.Getpid())
	return os.WriteFile(l.file.Path(), []byte(text), 0o600)
}

// Release unlocks the home.
func (l *Lock) Release() error {
	os.Truncate(l.file.Path(), 0) // if this fails, the file still names the last holder
	return l.file.Unlock()
}

// lockPoll is the interval at which AwaitGone tries the lock, since file locks have no notification.
const lockPoll = 10 * time.Millisecond

// AwaitGone returns when no peer runs on the home dir, or when ctx ends.
func AwaitGone(ctx context.Context, dir string) error {
	l := flock.New(Dir(dir).lockFile())
	ok, err := l.TryRLockContext(ctx, lockPoll)
	if ok {
		err = l.Unlock()
	}
	if err != nil {
		return fmt.Errorf("wait for the peer on home %s to stop: %w", dir, err)
	}
	return nil
}
