package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/peer/control/doctor"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// A fakePeer records the requests that reach it.
type fakePeer struct {
	made []string
	fail error // of the methods that can fail
}

func (p *fakePeer) did(format string, args ...any) {
	p.made = append(p.made, fmt.Sprintf(format, args...))
}

func (p *fakePeer) Status(context.Context) status.Status { return status.Status{Peer: "fake"} }

func (p *fakePeer) Candidates(_ context.Context, wanted discovery.Filter) ([]submit.Candidate, error) {
	p.did("candidates on %s", wanted.OS)
	return nil, p.fail
}

func (p *fakePeer) Examine(context.Context) doctor.Facts { return doctor.Facts{Home: "unusable"} }

func (p *fakePeer) Cache() status.Cache { return status.Cache{Home: "here"} }

func (p *fakePeer) TrimCache(to int64) (status.Trimmed, error) {
	p.did("trim to %d", to)
	return status.Trimmed{Bytes: to}, p.fail
}

func (p *fakePeer) Stop(_ context.Context, prefix string, now bool) (status.Stopped, error) {
	p.did("stop %s, now %t", prefix, now)
	return status.Stopped{Job: prefix}, p.fail
}

func (p *fakePeer) Resize(slots int) status.Slots {
	p.did("resize to %d", slots)
	return status.Slots{Total: slots}
}

func (p *fakePeer) Fates(how status.Halt) status.Halting {
	p.did("fates of %s", how)
	return status.Halting{Mode: how}
}

func (p *fakePeer) Halt(how status.Halt) { p.did("halt %s", how) }

// TestRequestsReachThePeer sends requests to a fake peer. Invalid ones do not reach it.
func TestRequestsReachThePeer(t *testing.T) {
	for _, test := range []struct {
		method, path string
		fail         error
		status       int
		made         []string
		body         string // the answer contains this text
	}{
		{"GET", "/v1/status", nil, 200, nil, `"peer": "fake"`},
		{"GET", "/v1/symptoms", nil, 200, nil, `"home": "unusable"`},
		{"GET", "/v1/cache", nil, 200, nil, `"home": "here"`},
		{"GET", "/v1/candidates?filter=%7B%22os%22:%22linux%22%7D", nil, 200, []string{"candidates on linux"}, ""},
		{"GET", "/v1/candidates?filter=linux", nil, 400, nil, "filter: "},
		{"GET", "/v1/candidates", errors.New("no network"), 503, []string{"candidates on "}, "no network"},
		{"POST", "/v1/cache/trim?to=7", nil, 200, []string{"trim to 7"}, `"bytes": 7`},
		{"POST", "/v1/cache/trim?to=-1", nil, 400, nil, "want 0 or more"},
		{"POST", "/v1/cache/trim", nil, 400, nil, "to: "},
		{"POST", "/v1/cache/trim?to=7", errors.New("disk broken"), 500, []string{"trim to 7"}, "disk broken"},
		{"DELETE", "/v1/hosted/3f2b", nil, 200, []string{"stop 3f2b, now false"}, `"job": "3f2b"`},
		{"DELETE", "/v1/hosted/3f2b?now=true", nil, 200, []string{"stop 3f2b, now true"}, `"job": "3f2b"`},
		{"DELETE", "/v1/hosted/3f2b", fmt.Errorf("job: %w", ErrNotHosted), 404, []string{"stop 3f2b, now false"}, "no such job"},
		{"DELETE", "/v1/hosted/3f2b", fmt.Errorf("job: %w", ErrAmbiguous), 409, []string{"stop 3f2b, now false"}, "several jobs"},
		{"DELETE", "/v1/hosted/3f2b", errors.New("not yet"), 503, []string{"stop 3f2b, now false"}, "not yet"},
		{"POST", "/v1/slots?total=3", nil, 200, []string{"resize to 3"}, `"total": 3`},
		{"POST", "/v1/slots?total=-3", nil, 400, nil, "want 0 to"},
		{"POST", "/v1/slots?total=5000", nil, 400, nil, "want 0 to"},
		{"POST", "/v1/halt", nil, 202, []string{"fates of orderly", "halt orderly"}, `"mode": "orderly"`},
		{"POST", "/v1/halt?mode=drain", nil, 202, []string{"fates of drain", "halt drain"}, `"mode": "drain"`},
		{"POST", "/v1/halt?mode=soon", nil, 400, nil, "want orderly, drain or now"},
	} {
		peer, mux := &fakePeer{fail: test.fail}, http.NewServeMux()
		for pattern, handle := range Requests(peer) {
			mux.HandleFunc(pattern, handle)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), test.method, test.path, nil))
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.body) || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s: got %d %s, want %d with %q", test.method, test.path, w.Code, w.Body, test.status, test.body)
		}
		if !slices.Equal(peer.made, test.made) {
			t.Errorf("%s %s: got the calls %q, want %q", test.method, test.path, peer.made, test.made)
		}
	}
}
