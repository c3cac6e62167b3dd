package control

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

// clientConns bounds the connections to the status page. A new connection displaces the oldest, so a client
// that opens many idle connections cannot lock the owner out.
type clientConns struct {
	most int

	mu   sync.Mutex
	open []net.Conn // oldest first
}

func newClientConns(most int) *clientConns { return &clientConns{most: most} }

// changed implements the server's ConnState hook.
func (v *clientConns) changed(c net.Conn, s http.ConnState) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch s {
	case http.StateNew:
		if len(v.open) >= v.most {
			v.open[0].Close() // the server then reports StateClosed
			v.open = v.open[1:]
		}
		v.open = append(v.open, c)
	case http.StateClosed, http.StateHijacked:
		v.open = slices.DeleteFunc(v.open, func(other net.Conn) bool { return other == c })
	}
}
