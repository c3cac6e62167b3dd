package display

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

func TestLinesAreWrittenWhole(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	const ranks, count = 4, 50
	text := make([]string, ranks) // remaining output of each rank
	want := make([]string, ranks)
	for r := range ranks {
		for i := range count {
			want[r] += fmt.Sprintf("%d:%d:%s\n", r, i, strings.Repeat("x", rnd.IntN(20)))
		}
		text[r] = want[r]
	}
	var l lines
	var out []byte
	for len(strings.Join(text, "")) > 0 {
		r := rnd.IntN(ranks)
		n := min(len(text[r]), rnd.IntN(15))
		out = append(out, l.Add(job.Source{Rank: r, Stream: job.Stdout}, []byte(text[r][:n]))...)
		text[r] = text[r][n:]
	}
	got := make([]string, ranks)
	for line := range strings.Lines(string(out)) {
		var r int
		if _, err := fmt.Sscanf(line, "%d:", &r); err != nil {
			t.Fatalf("torn line %q", line)
		}
		got[r] += line
	}
	for r := range ranks {
		if got[r] != want[r] {
			t.Errorf("rank %d: the shown output differs from the written one", r)
		}
	}
}

func TestTagPrecedesEachLine(t *testing.T) {
	l, from := lines{Tag: true}, job.Source{Rank: 2, Stream: job.Stdout}
	out := string(l.Add(from, []byte("a\nb\nc")))
	out += string(l.Add(from, []byte("d\n")))
	out += string(l.Add(from, []byte("end")))
	out += string(l.Incomplete(from))
	if want := "[2] a\n[2] b\n[2] cd\n[2] end"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestProgressLineFitsTheWidth(t *testing.T) {
	s := newState(2, 2)
	v := view.New(2, 2)
	v.States[3] = view.Failed
	s.update(submit.Event{Kind: submit.PhaseEvent, Phase: submit.Running})
	s.update(submit.Event{Kind: submit.ViewEvent, View: &v})
	tests := map[string]struct {
		width int
		want  string
	}{
		"wide":    {80, "1:05 running  rank 0 ●●  rank 1 ●✗"},
		"narrow":  {30, "1:05 running  2 ranks, 3 proce"},
		"nothing": {0, ""},
	}
	for name, test := range tests {
		if got := s.line(65*time.Second, test.width); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestProgressShowsRemainingStagingTime(t *testing.T) {
	s := newState(2, 2)
	e := submit.Event{Kind: submit.PhaseEvent, Phase: submit.Staging, Count: 32 << 20, Total: 256 << 20, Rate: 4 << 20, ETA: 75.6, Slowest: "12D3KooWabcdefgh"}
	s.update(e)
	if got, want := s.line(8*time.Second, 80), "0:08 staging  32.0 MiB of 256.0 MiB  4.0 MiB/s  1:16 left  slowest …abcdefgh"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	e.Rate, e.ETA, e.Slowest = 0, 0, "" // rate and slowest peer are not known yet
	s.update(e)
	if got, want := s.line(8*time.Second, 80), "0:08 staging  32.0 MiB of 256.0 MiB"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// show runs a small job through a display and returns what it wrote.
func show(cfg Config, r job.Result) (stdout, stderr string) {
	var out, errs bytes.Buffer
	cfg.Name, cfg.Stdout, cfg.Stderr, cfg.Ranks, cfg.Replicas = "p2prun", &out, &errs, 1, 1
	d := New(cfg)
	for range 2 {
		d.Event(submit.Event{Kind: submit.PhaseEvent, Phase: submit.Reserving, Total: 1})
	}
	d.Event(submit.Event{Kind: submit.OutputEvent, Stream: job.Stdout, Data: []byte("out\nrest")})
	d.Event(submit.Event{Kind: submit.OutputEvent, Stream: job.Stderr, Data: []byte("err\n")})
	d.Event(submit.Event{Kind: submit.WarningEvent, Text: "careful"})
	d.Result(r)
	d.Close()
	return out.String(), errs.String()
}

func TestR6StdoutContainsOnlyRankOutput(t *testing.T) {
	for _, cfg := range []Config{{}, {JSON: true}} {
		stdout, _ := show(cfg, job.Result{Status: 3, Message: "no"})
		if want := "out\nrest"; stdout != want {
			t.Errorf("got %q, want %q", stdout, want)
		}
	}
}

func TestEventMessages(t *testing.T) {
	_, stderr := show(Config{}, job.Result{Status: 69, Message: "found 0", Hint: "boot more"})
	want := "p2prun: reserving 1 slot\nerr\np2prun: careful\np2prun: error: found 0\np2prun: hint: boot more\n"
	if stderr != want {
		t.Errorf("got %q, want %q", stderr, want)
	}
}

func TestJSONHasOneEventPerLine(t *testing.T) {
	_, stderr := show(Config{JSON: true}, job.Result{Status: 69})
	var kinds []string
	for line := range strings.Lines(stderr) {
		var e submit.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		kinds = append(kinds, string(e.Kind))
	}
	if got, want := strings.Join(kinds, " "), "phase phase output warning result"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no reader") }

func TestLostReaderIsAnError(t *testing.T) {
	d := New(Config{Name: "p2prun", Stdout: full{}, Stderr: &bytes.Buffer{}, Ranks: 1, Replicas: 1})
	defer d.Close()
	if d.Event(submit.Event{Kind: submit.OutputEvent, Stream: job.Stdout, Data: []byte("x\n")}) == nil {
		t.Error("got no error from an output without a reader")
	}
}

func TestProgressShowsPlaceInTheQueue(t *testing.T) {
	s := newState(4, 2)
	s.update(submit.Event{Kind: submit.PhaseEvent, Phase: submit.Waiting, Count: 5, Total: 8, Queue: &submit.Queue{Place: 3, Of: 7, Left: 42 * time.Second}})
	if got, want := s.line(12*time.Second, 80), "0:12 waiting for slots  5 of 8 free, place 3 of 7, 42 s left"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.update(submit.Event{Kind: submit.PhaseEvent, Phase: submit.Waiting, Total: 8, Queue: &submit.Queue{Left: 9 * time.Second}})
	if got, want := s.sentence(), "waiting for slots: 0 of 8 free, 9 s left"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// pieces records the data of each write.
type pieces struct{ writes [][]byte }

func (p *pieces) Write(b []byte) (int, error) {
	p.writes = append(p.writes, bytes.Clone(b))
	return len(b), nil
}

// TestR6KilledWriterTearsNoLine checks that each write of a large output consists of whole lines, and is not
// longer than an atomic write to a pipe unless a single line is.
func TestR6KilledWriterTearsNoLine(t *testing.T) {
	long := strings.Repeat("x", 3*atomicWrite) + "\n"
	text := strings.Repeat("a line of the output\n", 1000) + long + strings.Repeat("another one\n", 1000)
	var out pieces
	d := New(Config{Name: "p2prun", Stdout: &out, Stderr: new(bytes.Buffer)})
	if err := d.Event(submit.Event{Kind: submit.OutputEvent, Stream: job.Stdout, Data: []byte(text)}); err != nil {
		t.Fatal(err)
	}
	d.Close()
	if got := bytes.Join(out.writes, nil); string(got) != text {
		t.Errorf("%d bytes were written, want %d", len(got), len(text))
	}
	for _, b := range out.writes {
		if !bytes.HasSuffix(b, []byte("\n")) || len(b) > atomicWrite && string(b) != long {
			t.Errorf("a write of %d bytes that ends with %q", len(b), b[len(b)-1])
		}
	}
}
