package homedir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestIdentityIsPersistent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "identity")
	first, err := LoadIdentity(file)
	if err != nil {
		t.Fatal(err)
	}
	second, err := LoadIdentity(file)
	if err != nil {
		t.Fatal(err)
	}
	if !first.Equals(second) {
		t.Error("got another identity the second time")
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestInvalidIdentityIsRefused(t *testing.T) {
	tests := map[string]struct {
		content string
		mode    os.FileMode
		want    string
	}{
		"empty":             {"", 0o600, "no private key"},
		"garbage":           {"garbage", 0o600, "no private key"},
		"readable by group": {"garbage", 0o640, "readable by other users"},
	}
	for name, test := range tests {
		file := filepath.Join(t.TempDir(), "identity")
		if err := os.WriteFile(file, []byte(test.content), test.mode); err != nil {
			t.Fatal(err)
		}
		_, err := LoadIdentity(file)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %v, want %q and the file's name", name, err, test.want)
		}
	}
}

func TestSecondPeerInAHomeIsRefused(t *testing.T) {
	h, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, err := h.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Describe("12D3KooX"); err != nil {
		t.Fatal(err)
	}
	_, err = h.Lock()
	var running *RunningError
	if !errors.As(err, &running) || !strings.Contains(err.Error(), "12D3KooX (process ") {
		t.Errorf("got %v, want a RunningError that names the peer", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := h.Lock()
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	again.Release()
}

func TestUnusableHomes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"below a file": filepath.Join(file, "home"),
		"a file":       file,
		"too long":     filepath.Join(t.TempDir(), strings.Repeat("x", maxSocketPath)),
	}
	for name, dir := range tests {
		_, err := Open(dir)
		var home *Error
		if !errors.As(err, &home) || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want an Error of one line that names it", name, err)
		}
	}
}

func TestAwaitGoneWaitsForTheLock(t *testing.T) {
	h, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	lock, err := h.Lock()
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := AwaitGone(short, string(h)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while locked: got %v, want a deadline", err)
	}
	lock.Release()
	if err := AwaitGone(t.Context(), string(h)); err != nil {
		t.Error(err)
	}
}
