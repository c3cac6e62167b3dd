package replication

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestTranscripts replays the failure sequences in testdata. Lines that begin in the first column are
// commands; indented lines are their results.
func TestTranscripts(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) == 0 {
		t.Fatal("no transcripts were found")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("got:\n%s\nto rewrite the transcript, run with -update and check the diff", got)
			}
		})
	}
}

// replay returns the transcript with its present results.
func replay(text string) string {
	var b strings.Builder
	s := new(transcript)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		b.WriteString(line)
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			s.out = &b
			s.command(strings.Fields(line))
		}
	}
	return b.String()
}

// A transcript is a job in which every event is commanded.
type transcript struct {
	procs  map[view.Process]*Protocol
	queues map[[2]view.Process][]frame.Frame
	v      view.View
	out    *strings.Builder
}

// command carries out one of:
//
//	job N R               n ranks, r replicas
//	send P DEST TEXT      P's program sends, in context 0
//	decide P INDEX TEXT   P's engine decides
//	deliver P Q           all frames from P to Q arrive
//	lose P Q              all frames from P to Q are lost
//	fail P | finish P     in the view; no process has the view yet
//	join RANK             another replica, in the view; no process has the view yet
//	begin P               P, which has joined, starts with the view
//	view P...             P gets the view
//	reopen P Q            P's channel to Q was lost and reopened
//	tick P...
//	state P...
func (s *transcript) command(f []string) {
	var ps []view.Process
	for _, word := range f[1:] {
		var p view.Process
		if n, _ := fmt.Sscanf(word, "%d.%d", &p.Rank, &p.Replica); n == 2 {
			ps = append(ps, p)
		}
	}
	switch f[0] {
	case "job":
		s.begin(number(f[1]), number(f[2]))
	case "send":
		s.show(ps[0], s.procs[ps[0]].Send(protection.Message{Dest: number(f[2]), Payload: []byte(f[3])}))
	case "decide":
		pt := protection.Point{Index: uint64(number(f[2]))}
		s.show(ps[0], s.procs[ps[0]].Decide(protection.Determinant{Point: pt, Outcome: []byte(f[3])}))
	case "deliver":
		s.deliver(ps[0], ps[1])
	case "lose":
		s.queues[[2]view.Process(ps)] = nil
	case "fail":
		s.v, _ = s.v.With(ps[0], view.Failed)
	case "finish":
		s.v, _ = s.v.With(ps[0], view.Finished)
	case "promote":
		s.v, _ = s.v.Promote(ps[0])
	case "join":
		s.v, _, _ = s.v.Join(number(f[1]))
	case "begin":
		s.procs[ps[0]] = NewJoining(ps[0], s.v, Secret{})
	case "reopen":
		s.show(ps[0], s.procs[ps[0]].Reopened(ps[1]))
	default:
		for _, p := range ps {
			s.each(f[0], p)
		}
	}
}

// each carries out a command that takes several processes.
func (s *transcript) each(command string, p view.Process) {
	q := s.procs[p]
	switch command {
	case "view":
		s.show(p, q.View(s.v))
	case "tick":
		s.show(p, q.Tick())
	case "state":
		fmt.Fprintf(s.out, "\t%v epoch %d, decider %v, retains %d\n",
			p, q.v.Epoch, q.Decider(), q.Retained())
	default:
		fmt.Fprintf(s.out, "\tunknown command\n")
	}
}

func (s *transcript) begin(n, r int) {
	s.v = view.New(n, r)
	s.procs = make(map[view.Process]*Protocol)
	s.queues = make(map[[2]view.Process][]frame.Frame)
	for _, p := range s.v.Processes() {
		s.procs[p] = New(p, s.v, Secret{})
	}
}

func (s *transcript) deliver(from, to view.Process) {
	way := [2]view.Process{from, to}
	frames := s.queues[way]
	s.queues[way] = nil
	for _, f := range frames {
		out, err := s.procs[to].Receive(from, f)
		if err != nil {
			fmt.Fprintf(s.out, "\t%v: %v\n", to, err)
		}
		s.show(to, out)
	}
}

// show writes the output of p, and sends its frames.
func (s *transcript) show(p view.Process, out protection.Output) {
	for _, m := range out.Deliver {
		fmt.Fprintf(s.out, "\t%v is delivered %q, number %d from rank %d\n", p, m.Payload, m.Seq, m.Source)
	}
	for _, d := range out.Decided {
		fmt.Fprintf(s.out, "\t%v sees that point %d is %q\n", p, d.Index, d.Outcome)
	}
	for _, d := range out.Diverged {
		how, than := "the same", "as"
		if d.Differs() {
			how, than = "another", "than"
		}
		fmt.Fprintf(s.out, "\t%v has produced %s message %d %s %v has received\n", p, how, d.Seq, than, d.Receiver)
	}
	for _, e := range out.Send {
		f := e.Frame
		fmt.Fprintf(s.out, "\t%v -> %v %s %d %s\n", p, e.To, kindNames[f.Kind], f.Seq, content(f))
		way := [2]view.Process{p, e.To}
		s.queues[way] = append(s.queues[way], f)
	}
}

// content describes the payload of f.
func content(f frame.Frame) string {
	switch f.Kind {
	case frame.Ack:
		return fmt.Sprintf("digests %d", max(0, len(f.Payload)-keySize)/8)
	case frame.Dispute:
		d, _ := decodeDispute(f, -1, 9)
		return fmt.Sprintf("about what %d.%d has received", d.rank, d.replica)
	}
	return strconv.Quote(string(f.Payload))
}

var kindNames = map[frame.Kind]string{
	frame.Data: "data", frame.Ack: "ack", frame.Determinant: "determinant",
	frame.DeterminantAck: "determinant-ack", frame.Stable: "stable",
	frame.Sync: "sync", frame.SyncReply: "sync-reply", frame.Dispute: "dispute",
	frame.Greet: "greet", frame.LogRequest: "log-request", frame.MessageLog: "log",
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}
