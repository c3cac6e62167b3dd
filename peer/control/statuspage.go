package control

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

// A StatusPage describes the web page of a peer's status.
type StatusPage struct {
	Address string      // host:port
	Home    homedir.Dir // holds the password
	Status  func(context.Context) status.Status
	Metrics prometheus.Gatherer
	Log     zerolog.Logger
}

// Serve serves the status page and the metrics over plain HTTP until the server is closed. They are
// read-only and require the password.
func (p StatusPage) Serve(ctx context.Context) (*PageServer, error) {
	password, err := loadPassword(p.Home.Password())
	if err != nil {
		return nil, &homedir.Error{Home: string(p.Home), Err: homedir.PlainPathError(err)}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.write)
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusOK, p.Status(r.Context()))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.Metrics, promhttp.HandlerOpts{}))
	server, err := servePage(ctx, p.Address, password, mux)
	if err != nil {
		return nil, fmt.Errorf("serve the status page: %w", err)
	}
	if at, ok := server.addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() {
		p.Log.Warn().Str("http", at.String()).Msg("the status page is served over plain HTTP: anyone on the network path can read its password; use 127.0.0.1 and a tunnel, or a proxy with TLS")
	}
	p.Log.Info().Str("http", "http://"+server.addr().String()).Str("password", "in "+p.Home.Password()).Msg("status page")
	return server, nil
}

func (p StatusPage) write(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	if err := p.Status(r.Context()).WritePage(w); err != nil {
		p.Log.Debug().Err(err).Msg("write status page")
	}
}
