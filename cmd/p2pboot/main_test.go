package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

func TestMain(m *testing.M) {
	if status, ok := launch.Supervise(); ok {
		os.Exit(status)
	}
	if os.Getenv(asCommand) != "" { // this process is the detached child
		main()
	}
	goleak.VerifyTestMain(m)
}

// asCommand is the environment variable that makes the test binary run as p2pboot.
const asCommand = "P2PMPI_TEST_P2PBOOT"

func TestHelpFitsATerminal(t *testing.T) {
	var out, errs bytes.Buffer
	for _, args := range [][]string{{"--help"}, {"status", "--help"}, {"doctor", "--help"}, {"network", "--help"}, {"network", "create", "--help"}, {"network", "invite", "--help"}, {"network", "join", "--help"}, {"network", "show", "--help"}, {"completion", "--help"}, {"slots", "--help"}, {"stop", "--help"}, {"cache", "--help"}, {"cache", "trim", "--help"}, {"cache", "clear", "--help"}} {
		if status := run(t.Context(), args, &out, &errs); status != 0 || errs.Len() > 0 {
			t.Fatalf("%v: got status %d, %s", args, status, errs.String())
		}
	}
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("a line of the help text has %d columns: %s", n, line)
		}
	}
	for _, want := range []string{"Examples:", "Exit status:", "--supernode", "Commands:", "--json"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help text does not contain %s", want)
		}
	}
}

// TestEveryCommandHasItsOwnHelp checks that no command shows the help of another.
func TestEveryCommandHasItsOwnHelp(t *testing.T) {
	for _, args := range [][]string{
		{"network", "create"}, {"network", "invite"}, {"network", "join"}, {"network", "show"}, {"network"},
		{"cache", "trim"}, {"cache", "clear"}, {"cache"}, {"completion"}, {"completion", "zsh"}, {"status"}, {"doctor"},
	} {
		var out, errs bytes.Buffer
		if status := run(t.Context(), append(args, "--help"), &out, &errs); status != 0 {
			t.Errorf("%v: got status %d, %s", args, status, errs.String())
		}
		if want := "\n  p2pboot " + strings.Join(args, " "); !strings.Contains(out.String(), want) || strings.Contains(out.String(), "(default )") {
			t.Errorf("%v: %q is not in:\n%s", args, want, out.String())
		}
	}
}

func TestMistakes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("slots: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args   []string
		status int
		want   string
	}{
		"unknown option":            {[]string{"--slotz", "1"}, 64, "p2pboot: error: unknown option: --slotz\np2pboot: hint: did you mean --slots?"},
		"not a number":              {[]string{"--slots", "many"}, 64, `p2pboot: error: --slots "many": want a whole number`},
		"mistyped":                  {[]string{"stauts"}, 64, "did you mean p2pboot status?"},
		"mistyped subcommand":       {[]string{"network", "invit"}, 64, "did you mean p2pboot network invite?"},
		"without dashes":            {[]string{"detach"}, 64, "did you mean p2pboot --detach?"},
		"network without a command": {[]string{"network"}, 64, "COMMAND is missing: create NAME, invite, join TOKEN or show"},
		"create without a name":     {[]string{"network", "create"}, 64, "want the NAME of the network"},
		"create, bad home":          {[]string{"network", "--home", filepath.Join(file, "x"), "create", "lab"}, 73, "p2pboot: error: home " + file},
		"no port":                   {[]string{"--http", "127.0.0.1"}, 64, `http "127.0.0.1": want host:port`},
		"invalid port":              {[]string{"--http", "127.0.0.1:99999"}, 64, `http "127.0.0.1:99999": want host:port`},
		"argument":                  {[]string{"now"}, 64, `unexpected argument "now"`},
		"status, no peer":           {[]string{"status", "--home", t.TempDir()}, 69, "p2pboot: error: no peer is running on home"},
		"status with an argument":   {[]string{"status", "now"}, 64, `unexpected argument "now"`},
		"doctor with an argument":   {[]string{"doctor", "now"}, 64, `unexpected argument "now"`},
		"doctor, negative":          {[]string{"doctor", "--slots", "-1"}, 64, "slots -1: want 0 to"},
		"stop without a job":        {[]string{"stop"}, 64, "JOB is missing"},
		"stop, no peer":             {[]string{"stop", "3f2b8c1e", "--home", t.TempDir()}, 69, "p2pboot: error: no peer is running on home"},
		"trim without a size":       {[]string{"cache", "trim"}, 64, "error: --to MIB is missing or invalid"},
		"negative size":             {[]string{"cache", "trim", "--to", "-5"}, 64, "--to MIB is missing or invalid"},
		"cache with an argument":    {[]string{"cache", "now"}, 64, `unexpected argument "now"`},
		"cache, bad home":           {[]string{"cache", "--home", filepath.Join(file, "x")}, 73, "home " + file},
		"history, bad home":         {[]string{"history", "--home", filepath.Join(file, "x")}, 73, "p2pboot: error: home " + file},
		"status, bad home":          {[]string{"status", "--home", filepath.Join(file, "x")}, 73, "p2pboot: error: home " + file},
		"stop, bad home":            {[]string{"stop", "3f2b8c1e", "--home", filepath.Join(file, "x")}, 73, "p2pboot: error: home " + file},
		"negative":                  {[]string{"--slots", "-1"}, 64, "slots -1: want 0 to"},
		"corrupt file":              {[]string{"--config", file}, 64, "configuration file " + file + ": line"},
		"missing token":             {[]string{"--home", t.TempDir(), "--token", file + "x"}, 64, "p2pboot: error: token: stat " + file + "x: no such file"},
		"unusable home":             {[]string{"--home", filepath.Join(file, "x")}, 73, "p2pboot: error: home " + file},
		"address in use":            {[]string{"--home", t.TempDir(), "--nat=false", "--mdns=false", "--listen", "/ip4/192.0.2.1/tcp/1"}, 69, "192.0.2.1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if status := run(t.Context(), test.args, &out, &errs); status != test.status {
				t.Errorf("got status %d, want %d", status, test.status)
			}
			if !strings.Contains(errs.String(), test.want) || out.Len() > 0 {
				t.Errorf("got %q and output %q, want %q", errs.String(), out.String(), test.want)
			}
		})
	}
}

func TestReadyLineThenCleanShutdown(t *testing.T) {
	home, err := os.MkdirTemp("", "boot")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	ctx, terminate := context.WithCancel(t.Context())
	defer terminate()
	r, w := io.Pipe()
	ended := make(chan int, 1)
	args := []string{"--home", home, "--listen", "/ip4/127.0.0.1/tcp/0", "--nat=false", "--mdns=false"}
	var errs bytes.Buffer
	go func() { // ends after terminate
		ended <- run(ctx, args, w, zerolog.SyncWriter(&errs)) // a peer logs from several goroutines
		w.Close()
	}()
	out := bufio.NewReader(r)
	ready, err := out.ReadString('\n')
	if err != nil {
		t.Fatalf("got no ready line: %s", errs.String())
	}
	words := strings.Fields(ready)
	if len(words) != 3 || words[0] != "ready" || !strings.HasSuffix(words[2], "/p2p/"+words[1]) {
		t.Errorf("got %q, want: ready ID ADDRESS", ready)
	}
	var second bytes.Buffer
	if status := run(t.Context(), args, io.Discard, &second); status != 64 || !strings.Contains(second.String(), words[1]) {
		t.Errorf("second peer on the home: got status %d, %q; want 64 and the peer named", status, second.String())
	}
	terminate()
	if status := <-ended; status != 0 {
		t.Errorf("got status %d, want 0", status)
	}
	if rest, _ := io.ReadAll(out); len(rest) > 0 {
		t.Errorf("got more output: %q", rest)
	}
	if _, err := os.Stat(filepath.Join(home, "control.sock")); err == nil {
		t.Error("the control socket was not removed")
	}
}

func TestDetachedPeerReportsReadinessOrReason(t *testing.T) {
	home, err := os.MkdirTemp("", "boot")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	t.Setenv(asCommand, "1")
	args := []string{"--home", home, "--listen", "/ip4/127.0.0.1/tcp/0", "--nat=false", "--mdns=false", "--detach"}
	var out, errs bytes.Buffer
	if status := run(t.Context(), args, &out, &errs); status != 0 || !strings.HasPrefix(out.String(), "ready ") {
		t.Fatalf("got status %d, %q, %s; want ready", status, out.String(), errs.String())
	}
	client, err := control.Dial(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if status := run(t.Context(), args, io.Discard, &errs); status != 64 || !strings.Contains(errs.String(), "already running") {
		t.Errorf("second: got status %d, %q; want 64 and the reason", status, errs.String())
	}
	if _, err := client.Halt(t.Context(), status.Now); err != nil {
		t.Fatal(err)
	}
	if err := homedir.AwaitGone(t.Context(), home); err != nil {
		t.Error(err)
	}
}
