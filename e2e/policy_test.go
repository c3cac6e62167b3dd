package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestS3PolicyByDefault uses an owner's default settings. A stranger's native program is refused
// and a stranger's module runs, and so does the owner's own native program. The log and the history
// must distinguish all three.
func TestS3PolicyByDefault(t *testing.T) {
	t.Parallel()
	owner := untouched().startPeer(t, t.TempDir())
	owner.awaitReady()
	stepper, sum := filepath.Join(bin, "stepper"), compiled(t, "sum.wasm")

	refused := submit(t, t.TempDir(), "--supernode", owner.addr, "-n", "1", "-w", "1", stepper)
	if s := refused.wait(); s != 69 || !strings.Contains(refused.stderr.String(), "1 wasm only") {
		t.Errorf("a stranger's native program ended with status %d:\n%s", s, refused.stderr)
	}
	module := submit(t, t.TempDir(), "--supernode", owner.addr, "-n", "1", "-w", "60", sum)
	if s := module.wait(); s != 0 || module.stdout.String() != "the sum is 1\n" {
		t.Errorf("a stranger's module ended with status %d:\n%s%s", s, module.stdout, module.stderr)
	}
	own := submit(t, owner.home, "-n", "1", "-w", "60", stepper, "-steps", "20", "-every", "10")
	if s := own.wait(); s != 0 {
		t.Errorf("the owner's own native program ended with status %d:\n%s", s, own.stderr)
	}
	expectNothingLeft(t, []*peerProcess{owner})

	owner.expectLogged(t, "slots refused by the owner's policy", map[string]any{"class": "everyone", "kinds": []any{"native"}, "error": "refused: wasm only"})
	taken := owner.expectLogged(t, "job accepted", map[string]any{"class": "everyone", "kind": "wasm", "name": "sum.wasm", "digest": digestOf(t, sum)})
	mine := owner.expectLogged(t, "job accepted", map[string]any{"class": "mine", "kind": "native", "name": "stepper", "digest": digestOf(t, stepper), "signed_by": owner.id})
	out, err := p2pboot("history", "--home", owner.home, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var past []struct{ Submitter, Class, Kind, Digest, Signed string }
	if err := json.Unmarshal([]byte(out), &past); err != nil || len(past) != 2 {
		t.Fatalf("want the two jobs that ran in the history, got error %v and:\n%s", err, out)
	}
	for i, line := range []map[string]any{mine, taken} { // newest first
		e := past[i]
		if e.Submitter != line["signed_by"] || e.Class != line["class"] || e.Kind != line["kind"] || e.Digest != line["digest"] || e.Signed != line["signed"] || len(e.Signed) != 64 {
			t.Errorf("the history has %+v, the log %v", e, line)
		}
	}
}

// TestS3AllowAndDenyLists uses an owner's lists of allowed and denied peers, and a submitter's choice of peers.
// Native programs of an allowed submitter and modules of strangers run. Programs of a denied submitter do not
// run. No job runs on a peer that its submitter excludes.
func TestS3AllowAndDenyLists(t *testing.T) {
	t.Parallel()
	friend := boot(t, "--slots", "1")
	foe := boot(t, "--slots", "1", "--supernode", friend.addr)
	owner := untouched().startPeer(t, t.TempDir(), "--slots", "2", "--supernode", friend.addr, "--allow", friend.id, "--deny", foe.id)
	owner.awaitReady()
	stepper, sum := filepath.Join(bin, "stepper"), compiled(t, "sum.wasm")

	// expect runs a job and checks its status, its peers and its messages.
	expect := func(name string, status int, at []*peerProcess, says string, j *job) {
		t.Helper()
		if s := j.wait(); s != status || !strings.Contains(j.stderr.String(), says) {
			t.Errorf("%s: exit status %d, want %d and %q:\n%s", name, s, status, says, j.stderr)
		}
		for e := range j.events {
			if e.Event == "placed" {
				j.notePlaced(e)
			}
		}
		for process, id := range j.placed {
			if !slices.ContainsFunc(at, func(p *peerProcess) bool { return p.id == id }) {
				t.Errorf("%s: process %s was at %s", name, process, id)
			}
		}
		if status == 0 && len(j.placed) == 0 {
			t.Errorf("%s: the job was placed on no peer", name)
		}
	}
	short := []string{"-steps", "20", "-every", "10"}
	of := func(p *peerProcess, args ...string) *job { return submit(t, p.home, append(args, short...)...) }
	at := func(peers ...*peerProcess) []*peerProcess { return peers }

	expect("the friend's native program", 0, at(owner), "", of(friend, "-n", "2", "-w", "60", "--not-peer", friend.id+","+foe.id, stepper))
	expect("a stranger's module", 0, at(owner), "", submit(t, t.TempDir(), "--supernode", friend.addr, "--peer", owner.id, "-n", "1", "-w", "60", sum))
	expect("the foe's module", 69, nil, "1 denied", submit(t, foe.home, "--peer", owner.id, "-n", "1", "-w", "1", sum))
	expect("only the friend's peer", 0, at(friend), "", of(friend, "-n", "1", "-w", "60", "--only-mine", stepper))
	expect("more slots than the friend's peer has", 69, nil, "", of(friend, "-n", "2", "-w", "1", "--only-mine", stepper))
	expect("two peers of the friend", 0, at(friend, owner), "", of(friend, "-n", "3", "-w", "60", "--only-mine", "--mine", owner.id, stepper))
	expectNothingLeft(t, []*peerProcess{friend, foe, owner})
	owner.expectLogged(t, "job accepted", map[string]any{"class": "allowed", "kind": "native", "signed_by": friend.id})
	owner.expectLogged(t, "slots refused by the owner's policy", map[string]any{"peer": foe.id, "kinds": []any{"wasm"}, "error": "refused: denied"})
}

// untouched returns loopback with an owner's default settings.
func untouched() *machine {
	m := *loopback
	m.env = append(slices.Clone(loopback.env), "P2PMPI_ACCEPT=", "P2PMPI_NICENESS=") // empty counts as unset
	return &m
}

// expectLogged returns the line of the peer's log with this message and these fields, and fails the test if
// there is no such line.
func (p *peerProcess) expectLogged(t *testing.T, message string, fields map[string]any) (found map[string]any) {
	t.Helper()
	for text := range strings.Lines(p.log.String()) {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) == nil && line["message"] == message && has(line, fields) {
			return line
		}
	}
	t.Fatalf("no line with fields %v and message %q in\n%s", fields, message, p.log)
	return nil
}

// has reports whether a line contains all these fields.
func has(line, fields map[string]any) bool {
	for key, value := range fields {
		if !reflect.DeepEqual(line[key], value) {
			return false
		}
	}
	return true
}

func digestOf(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))
}
