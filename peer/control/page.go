package control

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
)

// Bounds on connections to the status page, which can be opened without the password.
const (
	maxReaders = 64
	idleReader = 30 * time.Second
)

// A PageServer serves a page over HTTP to clients that know a password.
type PageServer struct {
	http     *http.Server
	listener net.Listener
	served   chan struct{}
}

// servePage serves handler at a TCP address until Close, to requests with the password only.
func servePage(ctx context.Context, addr, password string, handler http.Handler) (*PageServer, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &PageServer{
		http: &http.Server{
			Handler:      knownHost(withPassword(password, handler)),
			ReadTimeout:  10 * time.Second,
			ConnState:    newClientConns(maxReaders).changed,
			IdleTimeout:  idleReader,
			WriteTimeout: 30 * time.Second,
		},
		listener: listener,
		served:   make(chan struct{}),
	}
	go func() { // ends with Close
		defer close(s.served)
		s.http.Serve(listener)
	}()
	return s, nil
}

// addr returns the address that the page is served at.
func (s *PageServer) addr() net.Addr { return s.listener.Addr() }

// Close stops serving. Open requests get one more second.
func (s *PageServer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.http.Shutdown(ctx)
	err := s.http.Close()
	<-s.served
	return err
}

// knownHost rejects requests whose host name is neither an IP address nor localhost. It prevents DNS
// rebinding: a web site could point a name of its own to this machine and read the page through a visitor's
// browser.
func knownHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			name = r.Host
		}
		if name != "localhost" && net.ParseIP(name) == nil {
			http.Error(w, "use the address, not a name", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// withPassword serves only requests with the password, using HTTP basic authentication. Browsers ask for
// the password and keep it for this port alone, and Prometheus can read it from a file. Any user name is
// accepted.
func withPassword(password string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, given, _ := r.BasicAuth()
		if subtle.ConstantTimeCompare([]byte(given), []byte(password)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="p2pboot", charset="UTF-8"`)
			http.Error(w, "the password is in the file http-password in the home of the peer; any user name will do", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// loadPassword returns the password in file. It creates the file the first time.
func loadPassword(file string) (string, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		password := rand.Text()
		return password, atomicfile.Write(file, []byte(password))
	}
	if err != nil {
		return "", err
	}
	password := string(bytes.TrimSpace(b))
	if len(password) < shortestPassword {
		return "", fmt.Errorf("password of the status page: %s has fewer than %d characters; remove the file to create a new one", file, shortestPassword)
	}
	return password, nil
}

// shortestPassword is the minimum length of a password that an owner chooses, in bytes.
const shortestPassword = 8
