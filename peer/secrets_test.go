package peer

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/internal/logtest"
	"github.com/p2pmpi/p2pmpi/mpj"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// exchange is a program in which two ranks send each other their numbers.
func exchange() int {
	world, err := mpj.Init(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	got := make([]int, 1)
	_, err = mpj.Sendrecv(world.Comm, []int{world.Rank()}, 1-world.Rank(), 0, got, 1-world.Rank(), 0)
	if err != nil || got[0] != 1-world.Rank() {
		fmt.Fprintln(os.Stderr, got, err)
		return 1
	}
	fmt.Println("exchanged")
	if err := world.Finalize(); err != nil {
		return 1
	}
	return 0
}

// draws is this process's source of random numbers. While it is listening, it keeps the drawn numbers by
// caller.
type draws struct {
	io.Reader

	mu   sync.Mutex
	kept map[string][][]byte // by function of this project, or nil if not listening
}

// drawn is set by TestMain.
var drawn = &draws{Reader: rand.Reader}

// Read draws random bytes into b.
func (d *draws) Read(b []byte) (int, error) {
	n, err := d.Reader.Read(b)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kept != nil && len(b) >= 16 {
		if by := drawer(); by != "" {
			d.kept[by] = append(d.kept[by], bytes.Clone(b[:n]))
		}
	}
	return n, err
}

// drawer returns the function of this project, outside of tests, that draws the random numbers.
func drawer() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if name, ours := strings.CutPrefix(f.Function, "github.com/p2pmpi/p2pmpi/"); ours && !strings.HasSuffix(f.File, "_test.go") {
			return name
		}
		if !more {
			return ""
		}
	}
}

// listen starts to keep drawn numbers. It returns a function that stops and returns them.
func (d *draws) listen() func() map[string][][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = make(map[string][][]byte)
	return func() map[string][][]byte {
		d.mu.Lock()
		defer d.mu.Unlock()
		kept := d.kept
		d.kept = nil
		return kept
	}
}

// public are the functions that draw numbers that are not secret: names of jobs and files, and random
// identifiers of peers' processes.
var public = []string{"peer/job/submit.newRun", "discovery.", "filetransfer."}

// TestJobSecretsAreNotDisclosed checks that the secrets that a peer draws for a job are not disclosed, such
// as reservation keys and the tokens of channels. It searches the logs at the lowest level, status, page
// and journal, and the events of the job. Processes draw their own private keys, which never leave them.
func TestJobSecretsAreNotDisclosed(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "exchange")
	if err := os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\nexec %s\n", self), 0o700); err != nil {
		t.Fatal(err)
	}
	log := new(logtest.Log)
	start := func(change func(*Config)) *Peer {
		cfg := LocalConfig()
		cfg.Home, cfg.Slots, cfg.Readable, cfg.LogLevel = shortDir(t), 1, []string{self}, "trace"
		cfg.Channels = []string{"tcp"}
		change(&cfg)
		p, err := New(t.Context(), cfg, Volunteer, zerolog.New(log).Level(zerolog.TraceLevel))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		return p
	}
	first := start(func(*Config) {})
	second := start(func(c *Config) { c.Supernodes = introducing(first) })
	client := dial(t, second)
	candidates, err := client.Candidates(t.Context(), discovery.Filter{})
	if err != nil || len(candidates) == 0 {
		t.Fatalf("got candidates %v, %v", candidates, err)
	}

	stop := drawn.listen()
	var events bytes.Buffer
	result, err := client.Run(t.Context(), submit.Request{
		Programs: []submit.Executable{{Platform: candidates[0].Platform, Path: program}},
		Name:     "exchange", N: 2, R: 1, Strategy: "spread", Wait: deadline, Timeout: time.Minute,
	}, func(e submit.Event) error {
		if e.Phase == submit.Running {
			for _, p := range []*Peer{first, second} {
				s := p.Status(t.Context())
				json.NewEncoder(&events).Encode(s)
				s.WritePage(&events)
			}
		}
		return json.NewEncoder(&events).Encode(e)
	})
	secrets := stop()
	if err != nil || result.Status != job.StatusOK {
		t.Fatalf("got %+v, %v:\n%s\n%s", result, err, events.String(), log)
	}
	told := map[string]string{"log": log.String(), "status, page and events": events.String()}
	for _, p := range []*Peer{first, second} {
		text, err := os.ReadFile(p.home.Journal())
		if err != nil || len(text) == 0 {
			t.Errorf("the journal says %q, %v", text, err)
		}
		told["journal of "+p.ID().String()] = string(text)
	}
	expectUndisclosed(t, secrets, told)
}

// expectUndisclosed checks that none of the secrets is disclosed, and that keys and tokens are among them.
func expectUndisclosed(t *testing.T, secrets map[string][][]byte, told map[string]string) {
	t.Helper()
	var drawers []string
	for by, all := range secrets {
		drawers = append(drawers, by)
		for _, secret := range all {
			for place, text := range told {
				if !isPublic(by) && discloses(text, secret) {
					t.Errorf("%s contains a secret drawn by %s", place, by)
				}
			}
		}
	}
	for _, want := range []string{"reservation.newkey", "newtoken"} {
		if !strings.Contains(strings.ToLower(strings.Join(drawers, " ")), want) {
			t.Errorf("%s drew no random numbers; these functions did: %v", want, drawers)
		}
	}
	if id := secrets["peer/job/submit.newRun"]; len(id) != 1 || !discloses(told["log"], id[0]) { // shows that the search works
		t.Errorf("the job's ID is not in the log: %x", id)
	}
}

func isPublic(drawer string) bool {
	for _, p := range public {
		if strings.HasPrefix(drawer, p) {
			return true
		}
	}
	return false
}

// discloses reports whether a text contains a secret in any form, or one half of a secret of 32 bytes or more.
func discloses(text string, secret []byte) bool {
	parts := [][]byte{secret}
	if len(secret) >= 32 {
		parts = append(parts, secret[:len(secret)/2], secret[len(secret)/2:])
	}
	for _, p := range parts {
		list := strings.Trim(fmt.Sprintf("%d", p), "[]") // the format of fmt
		for _, form := range []string{
			string(p), hex.EncodeToString(p), strings.ToUpper(hex.EncodeToString(p)),
			base64.RawStdEncoding.EncodeToString(p), base64.RawURLEncoding.EncodeToString(p),
			list, strings.ReplaceAll(list, " ", ","), strings.Trim(strconv.Quote(string(p)), `"`),
		} {
			if strings.Contains(text, form) {
				return true
			}
		}
	}
	return false
}
