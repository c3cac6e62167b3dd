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
	"github.com/p2pmpi/p2pmpi/peer/job"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"short": job.ShortPeer,
	"ago":   func(t time.Time) time.Duration { return time.Since(t).Round(time.Second) },
	"rtt":   func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) },
}).Parse(pageText))

// Bounds of the connections to the status page, for which nobody needs a password.
const (
	maxReaders = 64
	idleReader = 30 * time.Second
)

// startPage serves the status page and the metrics over plain HTTP where the
// owner asked for it. They can be read there, with the password, and nothing can be done.
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
		err := server.Close() // readers that are still there have had their second
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

// knownHost refuses requests by a name that is not an address or localhost: a
// web site elsewhere could point a name of its own here and read the page
// through its visitor's browser.
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

// withPassword serves the owner only, by HTTP's basic authentication: browsers ask for it, keep it
// for this port alone, and Prometheus can read it from a file. The user's name is of no concern.
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

// loadPassword returns what is in file, which it creates the first time.
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

// shortestPassword is what an owner may choose, in bytes.
const shortestPassword = 8
