package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

// deadline bounds the waits of a test. It is far above the usual duration.
const deadline = 20 * time.Second

// shortDir returns a home whose path is short enough for a socket, independent of the test's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "peer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// boot starts a peer on loopback that introduces itself to supernodes.
func boot(t *testing.T, change func(*Config)) *Peer {
	t.Helper()
	cfg := LocalConfig()
	cfg.Home = shortDir(t)
	cfg.Slots = 2
	if change != nil {
		change(&cfg)
	}
	p, err := New(t.Context(), cfg, Volunteer, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// introducing returns the setting Supernodes of a peer that p introduces.
func introducing(p *Peer) []p2ppeer.AddrInfo { return []p2ppeer.AddrInfo{p.AddrInfo()} }

// absentPeer has the address of a peer that does not exist.
var absentPeer = func() p2ppeer.AddrInfo {
	info, err := p2ppeer.AddrInfoFromString("/ip4/127.0.0.1/tcp/1/p2p/12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf")
	if err != nil {
		panic(err)
	}
	return *info
}()

func dial(t *testing.T, p *Peer) *control.Client {
	t.Helper()
	c, err := control.Dial(t.Context(), string(p.home))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestTwoPeersMeetAndRunAJob(t *testing.T) {
	first := boot(t, nil)
	second := boot(t, func(c *Config) { c.Supernodes = introducing(first) })
	if err := second.Unmet(); err != nil {
		t.Fatal(err)
	}
	client := dial(t, second)
	candidates, err := client.Candidates(t.Context(), discovery.Filter{})
	if err != nil || len(candidates) == 0 {
		t.Fatalf("got candidates %v, %v; want some", candidates, err)
	}
	req := submit.Request{
		Programs: []submit.Executable{{Platform: candidates[0].Platform, Path: "/bin/sh"}},
		Name:     "sh", Args: []string{"-c", "echo out"},
		N: 4, R: 1, Strategy: "spread", Wait: deadline,
	}
	for name, filter := range map[string]discovery.Filter{
		"mine":    {Only: []p2ppeer.ID{second.ID()}},
		"another": {Not: []p2ppeer.ID{first.ID()}},
	} {
		chosen, err := client.Candidates(t.Context(), filter)
		if err != nil || len(chosen) != 1 {
			t.Errorf("%s: got %v, %v; want one of %d", name, chosen, err, len(candidates))
		}
	}
	var out bytes.Buffer
	result, err := client.Run(t.Context(), req, func(e submit.Event) error {
		out.Write(e.Data)
		return nil
	})
	if err != nil || result.Status != job.StatusOK {
		t.Fatalf("got %+v, %v; want success", result, err)
	}
	if got, want := out.String(), strings.Repeat("out\n", 4); got != want {
		t.Errorf("got output %q, want %q", got, want)
	}
	status, err := client.Status(t.Context())
	if err != nil || len(status.Known) != 1 && len(status.Known) != 2 || status.Peer != second.ID().String() {
		t.Errorf("got status %+v, %v; want the other peer known", status, err)
	}
}

func TestS4DisconnectedClientCancelsTheJob(t *testing.T) {
	p := boot(t, nil)
	client := dial(t, p)
	candidates, err := client.Candidates(t.Context(), discovery.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	req := submit.Request{
		Programs: []submit.Executable{{Platform: candidates[0].Platform, Path: "/bin/sleep"}},
		Name:     "sleep", Args: []string{"1000"},
		N: 1, R: 1, Strategy: "spread", Wait: deadline,
	}
	ctx, hangUp := context.WithCancel(t.Context())
	_, err = client.Run(ctx, req, func(e submit.Event) error {
		if e.Phase == submit.Running {
			hangUp()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want cancelled", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if !p.jobs.Await(ctx) || !p.awaitSlots(ctx) {
		t.Error("the job's slots were not released")
	}
}

func TestControlSocketIsForTheOwnerOnly(t *testing.T) {
	p := boot(t, nil)
	info, err := os.Stat(p.home.Socket())
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("got mode %#o, want 0600", got)
	}
}

func TestControlSocketAPI(t *testing.T) {
	p := boot(t, nil)
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", p.home.Socket())
	}}}
	defer client.CloseIdleConnections()
	tests := map[string]struct {
		method, path, body string
		status             int
		want               string
	}{
		"status":       {"GET", "/v1/status", "", 200, p.ID().String()},
		"unknown path": {"GET", "/v1/nothing", "", 404, ""},
		"wrong method": {"GET", "/v1/jobs", "", 405, ""},
		"bad mode":     {"POST", "/v1/halt?mode=gently", "", 400, "gently"},
		"bad filter":   {"GET", "/v1/candidates?filter=all", "", 400, "filter"},
		"not JSON":     {"POST", "/v1/jobs", "hello", 400, "read job"},
		"empty job":    {"POST", "/v1/jobs", "{}", 200, `"status":64`},
		"attach":       {"POST", "/v1/jobs/other/attach", "", 409, "no such job is kept"},
		"outside":      {"POST", "/v1/jobs/..%2fother/attach", "", 409, "no such job is kept"},
		"shown":        {"POST", "/v1/jobs/other/shown?number=1", "", 404, "no such job"},
		"not a number": {"POST", "/v1/jobs/other/shown?number=all", "", 400, "number"},
		"cancel":       {"DELETE", "/v1/jobs/other", "", 404, "no such job"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), test.method, "http://p2pmpi"+test.path, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != test.status || !strings.Contains(string(body), test.want) {
				t.Errorf("got %d %s, want %d with %q", resp.StatusCode, body, test.status, test.want)
			}
		})
	}
}

// TestO2HaltEndsLocalSubmissions checks that a halt ends jobs submitted here, with a reason other than
// the user's cancellation.
func TestO2HaltEndsLocalSubmissions(t *testing.T) {
	p := boot(t, nil)
	client := dial(t, p)
	candidates, err := client.Candidates(t.Context(), discovery.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	req := submit.Request{
		Programs: []submit.Executable{{Platform: candidates[0].Platform, Path: "/bin/sleep"}},
		Name:     "sleep", Args: []string{"1000"},
		N: 1, R: 1, Strategy: "spread", Wait: deadline,
	}
	closed := make(chan error, 1)
	result, err := client.Run(t.Context(), req, func(e submit.Event) error {
		if e.Phase == submit.Running {
			go func() { closed <- p.Close() }()
		}
		return nil
	})
	if want := "cancelled: the peer that the job was handed to is ending"; err != nil || result.Status != job.StatusCancelled || result.Message != want {
		t.Errorf("got %+v, %v; want %q", result, err, want)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestHaltReturnsAfterThePeerHasStopped(t *testing.T) {
	for _, how := range []status.Halt{status.Orderly, status.Drain, status.Now} {
		t.Run(string(how), func(t *testing.T) {
			p := boot(t, nil)
			client := dial(t, p)
			closed := make(chan error, 1)
			go func() { // as p2pboot does; ends when halted
				<-p.Halted()
				closed <- p.Close()
			}()
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			if _, err := client.Halt(ctx, how); err != nil {
				t.Error(err)
			}
			if err := homedir.AwaitGone(ctx, string(p.home)); err != nil {
				t.Fatal(err)
			}
			if err := <-closed; err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(p.home.Socket()); err == nil {
				t.Error("the socket is still there")
			}
			if _, err := control.Dial(t.Context(), string(p.home)); !errors.Is(err, control.ErrNoPeer) {
				t.Errorf("got %v, want control.ErrNoPeer", err)
			}
		})
	}
}

func TestUnresponsiveSupernodeIsReported(t *testing.T) {
	p := boot(t, func(c *Config) { c.Supernodes = []p2ppeer.AddrInfo{absentPeer} })
	if err := p.Unmet(); err == nil || !strings.Contains(err.Error(), "/ip4/127.0.0.1/tcp/1") {
		t.Errorf("got %v, want the address named", err)
	}
}

// lines collects log lines and signals each.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	select {
	case l.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (l *lines) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), s)
}

func TestPeerOfAnotherProtocolVersionIsRefused(t *testing.T) {
	log := &lines{more: make(chan struct{}, 1)}
	cfg := LocalConfig()
	cfg.Home = shortDir(t)
	p, err := New(t.Context(), cfg, Volunteer, zerolog.New(log).Level(zerolog.WarnLevel))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	newer, err := libp2p.New(libp2p.NoListenAddrs, libp2p.ProtocolVersion("p2pmpi/999"), libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	defer newer.Close()
	if err := newer.Connect(t.Context(), p2ppeer.AddrInfo{ID: p.ID(), Addrs: p.net.Host.Addrs()}); err != nil {
		t.Fatal(err)
	}
	timeout := time.After(deadline)
	for !log.has("p2pmpi/999") || len(p.net.Host.Network().ConnsToPeer(newer.ID())) > 0 {
		select {
		case <-log.more:
		case <-timeout:
			t.Fatalf("the attempt was not refused; log: %s", log.text.String())
		}
	}
}

func TestStatusPage(t *testing.T) {
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	p := boot(t, func(c *Config) { c.HTTP = addr })
	secret, err := os.ReadFile(p.home.Password())
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(p.home.Password()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the password has mode %v, %v", info.Mode(), err)
	}
	password := string(secret)
	tests := map[string]struct {
		path, host string
		status     int
		want       string
	}{
		"page":              {"/", addr, 200, "2 of 2"},
		"metrics":           {"/metrics", addr, 200, "libp2p_"},
		"status":            {"/v1/status", addr, 200, p.ID().String()},
		"localhost":         {"/", "localhost", 200, p.ID().String()},
		"foreign host name": {"/", "evil.example", 403, "address"},
		"unknown path":      {"/x", addr, 404, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+test.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host, req.Close = test.host, true
			req.Header.Set("Origin", "http://evil.example")
			req.SetBasicAuth("owner", password)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != test.status || !strings.Contains(string(body), test.want) {
				t.Errorf("got %d %.200s, want %d with %q", resp.StatusCode, body, test.status, test.want)
			}
			if allowed := resp.Header.Get("Access-Control-Allow-Origin"); allowed != "" {
				t.Errorf("pages of %s may read the status page", allowed)
			}
		})
	}
	for path, given := range map[string]string{"/": "", "/metrics": "", "/v1/status": password[1:], "/v1/halt": ""} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if given != "" {
			req.SetBasicAuth("owner", given)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized || strings.Contains(string(body), p.ID().String()) {
			t.Errorf("%s with password %q: got %d %.200s", path, given, resp.StatusCode, body)
		}
	}
}

// TestStatusPageIsReadOnly checks that a client with the password can only read. The actions of
// the control socket are not available, with any method.
func TestStatusPageIsReadOnly(t *testing.T) {
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	p := boot(t, func(c *Config) { c.HTTP = addr })
	secret, err := os.ReadFile(p.home.Password())
	if err != nil {
		t.Fatal(err)
	}
	try := func(method, path string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("owner", string(secret))
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: got %d", method, path, resp.StatusCode)
		}
	}
	tried := 0
	for pattern := range p.handlers() {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.ReplaceAll(path, "{id}", "other")
		if pattern != "GET /v1/status" {
			try(method, path+"?total=0&mode=now")
			tried++
		}
	}
	if tried < 10 {
		t.Errorf("%d calls were tried", tried)
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		for _, path := range []string{"/", "/v1/status", "/metrics"} {
			try(method, path)
		}
	}
	if s := p.Status(t.Context()); s.Slots.Total != 2 || s.Slots.Draining {
		t.Errorf("afterwards: %+v", s.Slots)
	}
	select {
	case <-p.Halted():
		t.Error("the peer halts")
	default:
	}
}

func TestStatusEncodesEmptyListsNotNull(t *testing.T) {
	p := boot(t, nil)
	b, err := json.Marshal(p.Status(t.Context()))
	if err != nil || bytes.Contains(b, []byte("null")) {
		t.Errorf("the status in JSON is %s, %v", b, err)
	}
}

func TestStatusShowsConnectionKinds(t *testing.T) {
	first := boot(t, nil)
	if first.Connected() {
		t.Error("the peer counts as connected, but knows no other peer")
	}
	second := boot(t, func(c *Config) { c.Supernodes = introducing(first) })
	for of, other := range map[*Peer]*Peer{first: second, second: first} {
		connected := of.Status(t.Context()).Connections
		if len(connected) != 1 || !of.Connected() {
			t.Fatalf("got %+v, want one", connected)
		}
		c := connected[0]
		if c.Peer != other.ID().String() || c.Way != "direct" || c.Transport != "tcp" || c.RTT <= 0 || c.Relay+c.Why != "" {
			t.Errorf("got %+v, want a direct connection over TCP and its round-trip time", c)
		}
	}
}

func TestSubmitOnlyPeerLeavesNoFiles(t *testing.T) {
	cfg := LocalConfig()
	cfg.Home = shortDir(t)
	p, err := New(t.Context(), cfg, SubmitOnly, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	p.Halt(status.Drain) // no job of another user runs here
	select {
	case <-p.Halted():
	default:
		t.Error("the peer waits for jobs that it cannot host")
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(cfg.Home); err != nil || len(left) > 0 {
		t.Errorf("the home contains %v, %v", left, err)
	}
}

func TestO3StatusShowsRunningJobs(t *testing.T) {
	p := boot(t, nil)
	client := dial(t, p)
	candidates, err := client.Candidates(t.Context(), discovery.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	req := submit.Request{
		Programs: []submit.Executable{{Platform: candidates[0].Platform, Path: "/bin/sleep"}},
		Name:     "sleep", Args: []string{"1000"},
		N: 2, R: 1, Strategy: "spread", Wait: deadline,
	}
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	var seen status.Status
	_, err = client.Run(ctx, req, func(e submit.Event) error {
		if e.Phase == submit.Running {
			seen, err = client.Status(t.Context())
			hangUp()
		}
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if len(seen.Hosted) != 1 || seen.Hosted[0].Program != "sleep" || len(seen.Hosted[0].Processes) != 2 ||
		seen.Hosted[0].Submitter != p.ID().String() || seen.Slots.Running != 2 || len(seen.Submitted) != 1 {
		t.Errorf("got %+v, want the job with its program, processes and submitter", seen)
	}
	var html bytes.Buffer
	if err := seen.WritePage(&html); err != nil || !strings.Contains(html.String(), "<td>sleep<td>0.0 1.0 ") {
		t.Errorf("got %v and no job on the page:\n%s", err, html.String())
	}
}
