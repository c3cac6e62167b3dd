package control

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// TestO4IdleConnectionsDoNotBlockRequests opens more idle connections than the page accepts. A request is
// still answered, and the oldest connections are closed.
func TestO4IdleConnectionsDoNotBlockRequests(t *testing.T) {
	const most = 8
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	v := newClientConns(most)
	server.Config.ConnState = v.changed
	server.Start()
	defer server.Close()
	var silent []net.Conn
	for range 3 * most {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(deadline))
		silent = append(silent, c)
	}
	resp, err := (&http.Client{Timeout: deadline}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		t.Errorf("the page answered %v", resp.Status)
	}
	if _, err := silent[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the oldest silent connection is still open")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.open) > most {
		t.Errorf("%d connections are open, want at most %d", len(v.open), most)
	}
}
