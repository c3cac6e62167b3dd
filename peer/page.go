package peer

import (
	_ "embed"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"short": submit.ShortPeer,
	"ago":   func(t time.Time) time.Duration { return time.Since(t).Round(time.Second) },
	"rtt":   func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) },
}).Parse(pageText))

// startPage serves the status page and the metrics over plain HTTP if the owner has configured it. They are
// read-only and require the password.
func (p *Peer) startPage() error {
	if p.cfg.HTTP == "" {
		return nil
	}
	password, err := control.LoadPassword(p.home.Password())
	if err != nil {
		return &homedir.Error{Home: string(p.home), Err: homedir.PlainPathError(err)}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.servePage)
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, r *http.Request) {
		control.Reply(w, http.StatusOK, p.Status(r.Context()))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{}))
	server, err := control.ServePage(p.life, p.cfg.HTTP, password, mux)
	if err != nil {
		return fmt.Errorf("serve the status page: %w", err)
	}
	if at, ok := server.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() {
		p.log.Warn().Str("http", at.String()).Msg("the status page is served over plain HTTP: anyone on the network path can read its password; use 127.0.0.1 and a tunnel, or a proxy with TLS")
	}
	p.log.Info().Str("http", "http://"+server.Addr().String()).Str("password", "in "+p.home.Password()).Msg("status page")
	p.owns("status page", server.Close)
	return nil
}

func (p *Peer) servePage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	if err := page.Execute(w, p.Status(r.Context())); err != nil {
		p.log.Debug().Err(err).Msg("write status page")
	}
}
