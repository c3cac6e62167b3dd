package control

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// A Server answers requests on the control socket.
type Server struct {
	http   *http.Server
	served sync.WaitGroup
}

// Serve answers requests on the given socket until Close. The handlers have the patterns of
// http.ServeMux. The contexts of requests derive from life.
func Serve(life context.Context, socket string, handlers map[string]http.HandlerFunc) (*Server, error) {
	listener, err := listenUnix(life, socket)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for pattern, handle := range handlers {
		mux.HandleFunc(pattern, handle)
	}
	s := &Server{http: &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return life },
	}}
	s.served.Go(func() { s.http.Serve(ownersListener{listener}) }) // ends with Close
	return s, nil
}

// Close stops serving. Requests that are not answered when ctx ends are aborted.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	s.served.Wait()
	return err
}

// A problem is the body of an answer whose status is not 2xx.
type problem struct {
	Error string `json:"error"`
}

// fail answers a request with a status other than 2xx and the error.
func fail(w http.ResponseWriter, status int, err error) {
	reply(w, status, problem{err.Error()})
}

// reply answers a request with body as JSON.
func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.Encode(body) // an error means that the client has disconnected
}
