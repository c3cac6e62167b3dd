package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/cmd/internal/localnet"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/net/networks"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

func TestMain(m *testing.M) {
	if status, ok := launch.Supervise(); ok {
		os.Exit(status)
	}
	if status, ok := localnet.Child(); ok {
		os.Exit(status)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise each process lingers for a second
	goleak.VerifyTestMain(m)
}

// isolate separates a test's p2prun from all other networks and homes.
func isolate(t *testing.T) {
	t.Helper()
	t.Setenv("P2PMPI_HOME", t.TempDir())
	t.Setenv("P2PMPI_LISTEN", "/ip4/127.0.0.1/tcp/0")
	t.Setenv("P2PMPI_MDNS", "false")
	t.Setenv("P2PMPI_NAT", "false")
	t.Setenv("TMPDIR", t.TempDir())
}

// nothingLeft checks that the temporary folder contains nothing new.
func nothingLeft(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("TMPDIR still contains %v: %v", left, err)
	}
}

func TestHelpFitsATerminal(t *testing.T) {
	var out, errs bytes.Buffer
	if status := run(t.Context(), []string{"--help"}, &out, &errs); status != 0 || errs.Len() > 0 {
		t.Fatalf("got status %d, %s", status, errs.String())
	}
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"Examples:", "Exit status:", "-n, --ranks", "-l, --files"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s", want)
		}
	}
}

// TestPeerOfAnotherNetworkIsNotUsed checks that p2prun uses no peer of a network other than the one that the
// user names.
func TestPeerOfAnotherNetworkIsNotUsed(t *testing.T) {
	isolate(t)
	cfg := peer.LocalConfig()
	cfg.Home, cfg.Network = os.Getenv("P2PMPI_HOME"), "lab"
	p, err := peer.New(t.Context(), cfg, peer.Volunteer, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	other := t.TempDir()
	if _, err := networks.Create(other, "office", "", time.Hour); err != nil {
		t.Fatal(err)
	}
	text, err := networks.Invite(other, "", networks.Invitee{}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"--network": {"--network", "office"}, "--token": {"--token", token}} {
		var out, errs bytes.Buffer
		status := run(t.Context(), append(args, "-n", "1", "/bin/true"), &out, &errs)
		if status != 64 || !strings.Contains(errs.String(), "belongs to network lab, not office") {
			t.Errorf("%s: got status %d, %s", name, status, errs.String())
		}
	}
	for _, open := range []string{"--open", "--open=false"} {
		var out, errs bytes.Buffer
		if status := run(t.Context(), []string{"--network", "lab", open, "-n", "1", "/bin/true"}, &out, &errs); status != 0 {
			t.Errorf("its own network: got status %d, %s", status, errs.String())
		}
		if warned := strings.Contains(errs.String(), "network lab is open"); warned != (open != "--open") {
			t.Errorf("%s: warned %v: %s", open, warned, errs.String())
		}
	}
}

// TestUnusableHome checks that p2prun exits with the common status for an unusable home.
func TestUnusableHome(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-n", "1", "-w", "0", "/bin/true"}, {"--attach"}, {"--attach", "3f2b8c1e"}} {
		var out, errs bytes.Buffer
		status := run(t.Context(), append([]string{"--home", filepath.Join(file, "x")}, args...), &out, &errs)
		if status != 73 || !strings.Contains(errs.String(), "p2prun: error: home "+file) || !strings.Contains(errs.String(), "--home") {
			t.Errorf("%q: got status %d, %s", args, status, errs.String())
		}
	}
}

// TestAttachToAJobOfAnotherRelease checks that p2prun says which release has to resume the job.
func TestAttachToAJobOfAnotherRelease(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(homedir.JobsOf(home), "3f2b8c1e")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "job"), []byte(`{"job":"3f2b8c1e","protocol":7,"release":"0.0.7","identity":"AA=="}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--attach"}, {"--attach", "3f2b"}} {
		var out, errs bytes.Buffer
		status := run(t.Context(), append([]string{"--home", home}, args...), &out, &errs)
		if got := strings.Join(strings.Fields(errs.String()), " "); status != 64 || !strings.Contains(got, "job 3f2b8c1e cannot be resumed: it was started by release 0.0.7 (protocol 7)") {
			t.Errorf("%q: got status %d, %s", args, status, got)
		}
	}
}

func TestMistakes(t *testing.T) {
	skip.Long(t)
	isolate(t)
	const absent = "/ip4/127.0.0.1/tcp/1/p2p/12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf"
	tests := map[string]struct {
		args   string
		status int
		want   string
	}{
		"no program":               {"-n 1", 64, "no PROGRAM"},
		"no -n":                    {"/bin/true", 64, "number of ranks is missing"},
		"-n 0":                     {"-n 0 /bin/true", 64, "-n is 0"},
		"-n not a number":          {"-n x /bin/true", 64, `-n "x": want a whole number`},
		"-r 0":                     {"-n 1 -r 0 /bin/true", 64, "-r is 0"},
		"-r not a number":          {"-n 1 -r many /bin/true", 64, `-r "many": want a whole number or auto`},
		"-r auto alone":            {"-n 1 -r auto /bin/true", 64, "-r auto requires --success P"},
		"-r auto without time":     {"-n 1 -r auto --success 0.9 /bin/true", 64, "-r auto requires --expect TIME"},
		"certain success":          {"-n 1 -r auto --success 1 --expect 1h /bin/true", 64, "--success is 1: want"},
		"success in percent":       {"-n 1 -r auto --success 99 --expect 1h /bin/true", 64, "--success is 99: want"},
		"success not a number":     {"-n 1 -r auto --success NaN --expect 1h /bin/true", 64, "--success is NaN: want"},
		"negative time":            {"-n 1 -r auto --success 0.9 --expect -1h /bin/true", 64, "--expect is -1h0m0s"},
		"longer than allowed":      {"-n 1 -r auto --success 0.9 --expect 2h --timeout 1h /bin/true", 64, "--timeout ends the job after 1h0m0s"},
		"success without auto":     {"-n 1 -r 2 --success 0.9 /bin/true", 64, "--success and --expect require -r auto"},
		"auto without peers":       {"-n 2 -w 0 -r auto --success 0.9 --expect 1h --supernode " + absent + " /bin/true", 69, "/ip4/127.0.0.1/tcp/1"},
		"auto without slots":       {"--local 2 -n 1 -w 2 -r auto --success 0.999 --expect 24h /bin/true", 69, "with 2 replicas each, 1 rank succeeds"},
		"strategy":                 {"-n 1 -a best /bin/true", 64, `strategy "best"`},
		"pattern":                  {"-n 1 -o [ /bin/true", 64, "-o"},
		"memory":                   {"-n 1 --min-memory much /bin/true", 64, `--min-memory "much": want a size such as 512MiB`},
		"peer":                     {"-n 1 --peer me --not-peer you /bin/true", 64, `not-peer "you": not a peer ID`},
		"mine and chosen":          {"-n 1 --only-mine --peer " + absent[len(absent)-52:] + " /bin/true", 64, "--only-mine and --peer"},
		"no peer of mine":          {"-n 1 --only-mine /bin/true", 64, "--only-mine: no peer is yours"},
		"timeout":                  {"-n 1 --timeout -1s /bin/true", 64, "--timeout is -1s"},
		"wait":                     {"-n 1 -w -1 /bin/true", 64, "-w is -1s"},
		"unknown program":          {"-n 1 surely-no-such-program", 64, "surely-no-such-program: not in PATH"},
		"missing input":            {"-n 1 -i nope /bin/true", 64, "input file nope"},
		"missing list":             {"-n 1 -l nope /bin/true", 64, "file list nope"},
		"input outside":            {"-n 1 -i ../nope /bin/true", 64, "outside the current folder"},
		"too few local":            {"--local 1 -n 1 -r 2 /bin/true", 64, "at least 2 are needed"},
		"lose without local peers": {"-n 1 --lose 1s /bin/true", 64, "--local"},
		"missing token":            {"-n 1 --token nope /bin/true", 64, "token: stat nope: no such file"},
		"supernode":                {"-n 1 --supernode here /bin/true", 64, `--supernode "here" is not a multiaddr`},
		"listen":                   {"-n 1 --listen tcp://x /bin/true", 64, `--listen "tcp://x" is not a multiaddr`},
		"attach and begin":         {"--attach -n 4 -r 2 ls", 64, "--ranks, --replicas: cannot be used with --attach"},
		"attach to nothing":        {"--attach --tag-output --json=false", 64, "no resumable job"},
		"too small":                {"--local 2 -n 1 -w 0 --min-memory 1000TiB /bin/true", 69, "2 too small"},
		"other system":             {"--local 2 -n 1 -w 0 --os plan9 /bin/true", 69, "2 other platform"},
		"no peer":                  {"-n 2 -r 2 -w 0 --supernode " + absent + " /bin/true", 69, "found 0 of the 4 slots needed (-n 2 -r 2)"},
		"no peer at all":           {"-n 1 -w 0 /bin/true", 69, "p2prun: hint: no peer runs on the home "},
		"supernode named":          {"-n 1 -w 0 --supernode " + absent + " /bin/true", 69, "/ip4/127.0.0.1/tcp/1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if status := run(t.Context(), strings.Fields(test.args), &out, &errs); status != test.status {
				t.Errorf("got status %d, want %d", status, test.status)
			}
			if !strings.Contains(errs.String(), "p2prun: error: ") || !strings.Contains(errs.String(), test.want) || out.Len() > 0 {
				t.Errorf("got %q and output %q, want %q", errs.String(), out.String(), test.want)
			}
			nothingLeft(t)
		})
	}
}

func TestMistypedOptions(t *testing.T) {
	for args, want := range map[string]string{
		"-np 4 prog":           "error: unknown option -np\np2prun: hint: the number of ranks is -n N",
		"-np4 prog":            "hint: the number of ranks is -n N",
		"--np 4 prog":          "hint: the number of ranks is -n N",
		"-N 4 prog":            "hint: did you mean -n?",
		"--replica 2 prog":     "hint: did you mean --replicas?",
		"--verbos -n 2 prog":   "hint: did you mean --verbose?",
		"--nonsense -n 2 prog": "hint: p2prun --help lists the options",
	} {
		var out, errs bytes.Buffer
		if status := run(t.Context(), strings.Fields(args), &out, &errs); status != 64 || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: got status %d and %q, want %q", args, status, errs.String(), want)
		}
	}
}

func TestMistakesAreEventsWithJSON(t *testing.T) {
	isolate(t)
	var out, errs bytes.Buffer
	status := run(t.Context(), []string{"--json", "-n", "1", "-r", "0", "/bin/true"}, &out, &errs)
	var e submit.Event
	if err := json.Unmarshal(errs.Bytes(), &e); err != nil || e.Result == nil || e.Result.Status != 64 || status != 64 {
		t.Errorf("got status %d, %q, %v", status, errs.String(), err)
	}
}

func TestAutoReportsItsReplicationDegree(t *testing.T) {
	isolate(t)
	var out, errs bytes.Buffer
	// New peers: each ends within an hour with probability 0.041.
	args := []string{"--json", "--local", "3", "-n", "1", "-r", "auto", "--success", "0.99", "--expect", "1h", "sh", "-c", "echo answer"}
	if status := run(t.Context(), args, &out, &errs); status != 0 || out.String() != "answer\n" {
		t.Fatalf("got status %d, %q: %s", status, out.String(), errs.String())
	}
	var choice *submit.Choice
	placed := 0
	for line := range strings.Lines(errs.String()) {
		var e submit.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if e.Kind == submit.ReplicasEvent {
			choice = e.Choice
			if !strings.Contains(e.Text, "-r auto: with 2 replicas each, 1 rank succeeds with probability 0.998") {
				t.Errorf("p2prun reported the choice as %q", e.Text)
			}
		}
		placed = max(placed, len(e.Placed))
	}
	if choice == nil || choice.Replicas != 2 || choice.Peers != 3 || placed != 2 {
		t.Errorf("got %+v and %d processes, want 2 replicas", choice, placed)
	}
	nothingLeft(t)
}

func TestLocalJobEndsAsTheProgramDoes(t *testing.T) {
	skip.Long(t)
	tests := map[string]struct {
		script string
		status int
		stdout string
	}{
		"succeeds":   {"echo out; echo err >&2", 0, "[0] out\n[1] out\n"},
		"exits 3":    {"exit 3", 3, ""},
		"no newline": {"printf tail", 0, "[0] tail\n[1] tail"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			isolate(t)
			var out, errs bytes.Buffer
			args := []string{"--local", "2", "-n", "2", "--tag-output", "sh", "-c", test.script}
			if status := run(t.Context(), args, &out, &errs); status != test.status {
				t.Errorf("got status %d, want %d: %s", status, test.status, errs.String())
			}
			if got := sorted(out.String()); got != test.stdout {
				t.Errorf("got %q, want %q", got, test.stdout)
			}
			nothingLeft(t)
		})
	}
}

// sorted orders the lines of two ranks, which arrive in any order.
func sorted(s string) string {
	if first, second, ok := strings.Cut(s, "\n"); ok && strings.HasPrefix(first, "[1]") {
		return strings.TrimSuffix(second, "\n") + "\n" + first + s[len(s)-len(second)+len(strings.TrimSuffix(second, "\n")):]
	}
	return s
}

func TestStagedAndCollected(t *testing.T) {
	isolate(t)
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("data", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"data/in": "hello", "list": "# files\ndata/in\n"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	args := []string{"--local", "1", "-n", "1", "-l", "list", "-o", "result", "sh", "-c", "tr a-z A-Z <data/in >result"}
	if status := run(t.Context(), args, &out, &errs); status != 0 {
		t.Fatalf("got status %d: %s", status, errs.String())
	}
	got, err := os.ReadFile("result")
	if err != nil || string(got) != "HELLO" {
		t.Errorf("got %q, %v; want the collected file", got, err)
	}
	nothingLeft(t)
}

// trigger calls do once, after text has been written to it.
type trigger struct {
	text string
	do   func()
	once sync.Once
	seen bytes.Buffer
}

func (w *trigger) Write(b []byte) (int, error) {
	w.seen.Write(b)
	if strings.Contains(w.seen.String(), w.text) {
		w.once.Do(w.do)
	}
	return len(b), nil
}

func TestCancelledJobExits130AndCleansUp(t *testing.T) {
	isolate(t)
	ctx, interrupt := context.WithCancel(t.Context())
	errs := &trigger{text: "running", do: interrupt}
	var out bytes.Buffer
	if status := run(ctx, []string{"--local", "1", "-n", "1", "sleep", "1000"}, &out, errs); status != 130 {
		t.Errorf("got status %d, want 130: %s", status, errs.seen.String())
	}
	nothingLeft(t)
}

func TestTimedOutJobExits75(t *testing.T) {
	isolate(t)
	var out, errs bytes.Buffer
	if status := run(t.Context(), []string{"--local", "1", "-n", "1", "--timeout", "1s", "sleep", "1000"}, &out, &errs); status != 75 {
		t.Errorf("got status %d, want 75: %s", status, errs.String())
	}
	nothingLeft(t)
}

func TestCompileErrorsAreShown(t *testing.T) {
	isolate(t)
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{"go.mod": "module m\n", "main.go": "package main\nfunc main() { nonsense() }\n"} {
		if err := os.WriteFile(filepath.Join(".", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	if status := run(t.Context(), []string{"--local", "1", "-n", "1", "."}, &out, &errs); status != 64 {
		t.Errorf("got status %d, want 64", status)
	}
	if !strings.Contains(errs.String(), "undefined: nonsense") {
		t.Errorf("got %q, want the compiler's message", errs.String())
	}
	nothingLeft(t)
}

func TestR6JobSurvivesTheLossOfAPeerAndAnswersOnce(t *testing.T) {
	skip.Long(t)
	isolate(t)
	var out, errs bytes.Buffer
	args := []string{"--local", "2", "-n", "1", "-r", "2", "--lose", "100ms", "sh", "-c", "sleep 2; echo answer"}
	if status := run(t.Context(), args, &out, &errs); status != 0 || out.String() != "answer\n" {
		t.Errorf("got status %d, output %q, want one answer: %s", status, out.String(), errs.String())
	}
	for _, want := range []string{"killing peer …", "rank 0 replica 0 failed"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("got %q, want %q", errs.String(), want)
		}
	}
	nothingLeft(t)
}

// TestEndsAlthoughOutputIsNotRead fills the pipe of standard output, which nothing reads.
func TestEndsAlthoughOutputIsNotRead(t *testing.T) {
	for name, want := range map[string]int{"timeout": 75, "signal": 130} {
		t.Run(name, func(t *testing.T) {
			isolate(t)
			r, out := io.Pipe()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			args := []string{"--local", "1", "-n", "1", "--timeout", "3s", "yes"}
			if name == "signal" {
				args[5] = "1h"
				go func() { // ends with the first byte
					r.Read(make([]byte, 1))
					interrupt()
				}()
			}
			var errs bytes.Buffer
			if status := run(ctx, args, out, &errs); status != want {
				t.Errorf("got status %d, want %d: %s", status, want, errs.String())
			}
			r.Close() // ends the write that timed out
			nothingLeft(t)
		})
	}
}
