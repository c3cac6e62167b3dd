package peer

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"short": submit.ShortPeer,
	"ago":   func(t time.Time) time.Duration { return time.Since(t).Round(time.Second) },
	"rtt":   func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) },
}).Parse(pageText))

// Bounds on connections to the status page, which can be opened without the password.
const (
	maxReaders = 64
	idleReader = 30 * time.Second
)

// startPage serves the status page and the metrics over plain HTTP if the owner has configured it. They are
// read-only and require the password.
func (p *Peer) startPage() error {
	if p.cfg.HTTP == "" {
		return nil
	}
	password, err := loadPassword(p.home.password())
	if err != nil {
		return &HomeError{string(p.home), err}
	}
	listener, err := new(net.ListenConfig).Listen(p.life, "tcp", p.cfg.HTTP)
	if err != nil {
		return fmt.Errorf("serve the status page: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.servePage)
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusOK, p.Status(r.Context()))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{}))
	server := &http.Server{
		Handler:      knownHost(withPassword(password, mux)),
		ReadTimeout:  10 * time.Second,
		ConnState:    newVisitors(maxReaders).changed,
		IdleTimeout:  idleReader,
		WriteTimeout: 30 * time.Second,
	}
	done := make(chan struct{})
	go func() { // ends with Shutdown
		defer close(done)
		server.Serve(listener)
	}()
	if at, ok := listener.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() {
		p.log.Warn().Str("http", at.String()).Msg("the status page is served over plain HTTP: whoever can listen on the network reads its password; use 127.0.0.1 and a tunnel, or a proxy with TLS")
	}
	p.log.Info().Str("http", "http://"+listener.Addr().String()).Str("password", "in "+p.home.password()).Msg("status page")
	p.owns("status page", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		server.Shutdown(ctx)
		err := server.Close() // remaining readers have had their second
		<-done
		return err
	})
	return nil
}

func (p *Peer) servePage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	if err := page.Execute(w, p.Status(r.Context())); err != nil {
		p.log.Debug().Err(err).Msg("write status page")
	}
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
		return "", plainPathError(err)
	}
	password := string(bytes.TrimSpace(b))
	if len(password) < shortestPassword {
		return "", fmt.Errorf("password of the status page: %s has less than %d characters; remove it for a new one", file, shortestPassword)
	}
	return password, nil
}

// shortestPassword is the minimum length of a password that an owner chooses, in bytes.
const shortestPassword = 8
