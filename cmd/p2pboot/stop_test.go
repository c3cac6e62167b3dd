package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/control"
)

// TestInterruptedStopMessages cancels before the request, after the request, and when the request was refused.
func TestInterruptedStopMessages(t *testing.T) {
	for name, c := range map[string]struct {
		before, refused bool
		want            string
	}{
		"before the request": {true, false, "was not asked"},
		"after the request":  {false, false, "will be stopped"},
		"refused":            {false, true, "no such job"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if cancel(); !c.refused {
					<-r.Context().Done()
				}
			}))
			defer server.Close()
			if c.before {
				cancel()
			}
			asked, said := traceSent(ctx)
			req, err := http.NewRequestWithContext(asked, http.MethodDelete, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				resp.Body.Close()
			}
			if c.refused {
				err = &control.RefusedError{Reason: "no such job"}
			}
			if err == nil {
				err = errors.New("answered")
			}
			if got := stopFailed(ctx, err, said()); got == nil || !strings.Contains(got.Error(), c.want) {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
}
