package display

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/peer/launch"
)

// TestStatusFitsATerminal shows a peer with a long status.
func TestStatusFitsATerminal(t *testing.T) {
	const other, relay = "12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf", "12D3KooWA9GnzYbTBxnnfLbTnHPC48SxuYhKWTHtBNz7J4kSGsaB"
	why := strings.Repeat("no tcp: dial tcp4 11.0.0.7:38181: i/o timeout; ", 4) + "w"
	granted := &status.Granted{Unenforced: []launch.Unenforced{{Limit: "cpu", Why: "this controller is not delegated to the peer's control group", Instead: "programs have a low priority"}}}
	if err := json.Unmarshal([]byte(`{"terms":[{"class":"mine","kinds":["wasm","native"]},{"class":"everyone","kinds":["wasm"],"slots":2}]}`), granted); err != nil {
		t.Fatal(err)
	}
	granted.Slot.Memory, granted.Slot.CPU, granted.Slot.Disk, granted.Job.Upload = 512<<20, 50, 4<<30, 1<<20
	s := status.Status{
		Peer: "12D3KooWRqGLrMJzoTKpVSjUhUtFa8M8FkGzZyxnqRSeL6kXeb7y", Network: "public", Home: "/srv/p2pmpi", Since: time.Now(),
		Slots:       status.Slots{Total: 4, Free: 1, Running: 3, Draining: true},
		Granted:     granted,
		Unprotected: []status.Unprotected{{Resource: "network", Why: "no namespaces: operation not permitted; seccomp: " + why}},
		Use:         status.Use{Memory: 34 << 20, Goroutines: 210, Streams: 1},
		Hosted: []status.HostedJob{
			{Job: "3f2b8c1e77", Submitter: other, State: "running", Program: "heat", Processes: []view.Process{{Rank: 0}, {Rank: 1}}, Channels: []status.Channel{
				{From: view.Process{Rank: 0}, To: view.Process{Rank: 2}, Peer: other, Kind: "stream", Way: "relayed", Relay: relay, RTT: 41_234_567, Why: why},
				{From: view.Process{Rank: 1}, To: view.Process{Rank: 2}, Peer: other, Kind: "stream", Way: "relayed", Relay: relay, RTT: 41_234_567, Why: why},
			}},
			{Job: "99", Submitter: other, State: "held", Slots: 1},
		},
		Submitted: []status.Submitted{{Status: submit.Status{Job: "5555", Name: "ep", N: 2, R: 2, Phase: submit.Running, Since: time.Now()}, Detached: time.Now()}},
		Connections: []status.Connection{
			{Peer: other, Way: "relayed", Relay: relay, Transport: "tcp", RTT: 41_234_567, Why: why},
			{Peer: relay, Way: "direct", Transport: "quic"},
		},
	}
	text := Status(s)
	expectFits(t, text,
		"slots: 1 of 4 free; 0 held, 0 confirmed, 3 running; draining",
		"limits of a process: memory 512 MiB, cpu 50 % of a processor, disk 4.0 GiB\n", "limits of a job: upload 1.0 MiB/s\n",
		"class mine: wasm, native\nclass everyone: wasm, slots 2\n",
		"not enforced: limit of cpu: this controller is not delegated",
		"not protected from native programs: network: no namespaces: operation",
		"uses: 34.0 MiB of memory, 1 stream, 210 goroutines\n",
		"hosted job: 3f2b8c1e heat 0.0 1.0, running, of …rMLvKXtf\n",
		"0.0 to 2.0, 1.0 to 2.0 at …rMLvKXtf: stream, relayed through …J4kSGsaB,\n", "41.2ms\n    why: no tcp",
		"hosted job: 99 1 slot, held", "submitted job: 5555 ep, 2 × 2, running",
		"connected: 2 peers\nPEER       KIND                       TRANSPORT  ROUND TRIP\n",
		"…rMLvKXtf  relayed through …J4kSGsaB  tcp        41.2ms\n  why: no tcp",
		"…J4kSGsaB  direct                     quic       no answer\n",
	)
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
}

// expectFits expects a text of at most 80 columns that contains all wants.
func expectFits(t *testing.T, text string, wants ...string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
