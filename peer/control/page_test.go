package control

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestStatusPagePassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "http-password")
	first, err := loadPassword(file)
	if err != nil || len(first) < 20 {
		t.Fatalf("the new password is %q, %v", first, err)
	}
	if again, err := loadPassword(file); again != first || err != nil {
		t.Errorf("second call: got %q, %v, want %q", again, err, first)
	}
	for text, want := range map[string]string{"my own choice\n": "my own choice", "": "", "short\n": ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := loadPassword(file); got != want || (err == nil) != (want != "") {
			t.Errorf("password file with %q: got %q, %v", text, got, err)
		}
	}
}

// TestStatusPageLimitsConnections checks that idle connections do not use up the peer's descriptors, and do
// not prevent answers to others.
func TestStatusPageLimitsConnections(t *testing.T) {
	page, err := servePage(t.Context(), "127.0.0.1:0", "a password", http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	addr := page.addr().String()
	// ask opens a connection and waits for an answer.
	ask := func() net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+addr+"\r\n\r\n")
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	first := ask()
	for range maxReaders {
		ask()
	}
	if _, err := io.Copy(io.Discard, first); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d connections are open at a time", maxReaders+1)
	}
}
