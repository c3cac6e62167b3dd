package match

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestTranscripts replays the events in testdata. Lines that begin in the first column are commands; indented lines are
// their results.
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
	s := &transcript{out: &b}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		b.WriteString(line)
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			s.command(strings.Fields(line))
		}
	}
	return b.String()
}

// A transcript is a Box whose every event is commanded.
type transcript struct {
	Box
	agrees   bool
	decider  bool
	receives map[string]*Recv
	seq      map[int]uint64 // number of the last message, by source
	out      *strings.Builder
}

// command carries out one of:
//
//	new single | decider | follower   an empty Box: without agreement, or at a process of a rank with replicas
//	post NAME SOURCE TAG              the receive's name is also its Owner
//	post NAME SOURCE TAG MESSAGE      a receive whose outcome is known
//	arrive SOURCE TAG                 the next message of the source
//	header SOURCE TAG                 the header of a message, whose number is not taken
//	decide NAME MESSAGE               the outcome of a receive, followed by all that has become possible
//	promote | demote                  the process is the decider, or no longer
//	probe SOURCE TAG
//	take SOURCE TAG
//	withdraw NAME
//	has MESSAGE
//
// A source or a tag may be "any". A message is named SOURCE#NUMBER. The posted receives and the unexpected messages
// follow the results of every command.
func (s *transcript) command(f []string) {
	switch f[0] {
	case "new":
		*s = transcript{
			agrees: f[1] != "single", decider: f[1] != "follower",
			receives: make(map[string]*Recv), seq: make(map[int]uint64), out: s.out,
		}
	case "post":
		s.post(f[1], int(number(f[2])), int32(number(f[3])), f[4:])
	case "arrive":
		s.arrive(int(number(f[1])), int32(number(f[2])))
	case "header":
		if r := s.Claim(int(number(f[1])), int32(number(f[2]))); r != nil {
			s.printf("%v is claimed", r.Owner)
		}
	case "decide":
		s.decide(s.receives[f[1]], named(f[2]))
	case "promote", "demote":
		s.decider = f[0] == "promote"
		s.settle()
	case "probe":
		if m, ok := s.Probe(int(number(f[1])), int32(number(f[2]))); m != nil {
			s.printf("%v fits, available %v", m.name(), ok)
		}
	case "take":
		if m, ok := s.Take(int(number(f[1])), int32(number(f[2]))); ok {
			s.printf("%v is taken", m.name())
		}
	case "withdraw":
		s.Withdraw(s.receives[f[1]])
	case "has":
		n := named(f[1])
		s.printf("%v", s.Has(n.source, n.seq))
	default:
		s.printf("unknown command")
	}
	s.show()
}

func (s *transcript) post(name string, source int, tag int32, outcome []string) {
	r := &Recv{Source: source, Tag: tag, Owner: name}
	s.receives[name] = r
	if s.agrees && (source == AnySource || len(outcome) > 0) {
		r.Wild = new(Wild)
	}
	if len(outcome) > 0 {
		n := named(outcome[0])
		r.Assign(n.source, n.seq)
	}
	m, result := s.Post(r, s.decider)
	s.result(r, m, result)
}

func (s *transcript) arrive(source int, tag int32) {
	s.seq[source]++
	s.result(s.Arrive(Message{Source: source, Tag: tag, Seq: s.seq[source]}, s.decider))
}

func (s *transcript) decide(r *Recv, n name) {
	if m, ok := s.Decide(r, n.source, n.seq); ok {
		s.result(r, m, Matched)
	}
	s.settle()
}

func (s *transcript) settle() {
	for {
		r, m, result := s.Next(s.decider)
		if result == Waits {
			return
		}
		s.result(r, m, result)
	}
}

func (s *transcript) result(r *Recv, m Message, result Result) {
	switch result {
	case Matched:
		s.printf("%v takes %v", r.Owner, m.name())
	case Proposed:
		s.printf("%v proposes %v", r.Owner, m.name())
	}
}

// show prints the contents of the Box.
func (s *transcript) show() {
	var posts, messages []string
	for r := range s.Posts() {
		posts = append(posts, r.Owner.(string)+r.Wild.String())
	}
	for m := range s.Messages() {
		messages = append(messages, m.name().String())
	}
	if slices.Concat(posts, messages) == nil {
		s.printf("quiet %v", s.Quiet())
		return
	}
	s.printf("posted [%s] unexpected [%s]", strings.Join(posts, " "), strings.Join(messages, " "))
}

func (w *Wild) String() string {
	switch {
	case w == nil:
		return ""
	case w.Open():
		return "(open)"
	}
	return fmt.Sprintf("(%s %v)", [...]string{proposed: "proposed", exact: "exact"}[w.state], w.message)
}

func (n name) String() string { return fmt.Sprintf("%d#%d", n.source, n.seq) }

func (s *transcript) printf(format string, args ...any) {
	fmt.Fprintf(s.out, "\t"+format+"\n", args...)
}

func number(word string) int64 {
	if word == "any" {
		return -1
	}
	n, err := strconv.ParseInt(word, 10, 32)
	if err != nil {
		panic(err)
	}
	return n
}

func named(word string) (n name) {
	if _, err := fmt.Sscanf(word, "%d#%d", &n.source, &n.seq); err != nil {
		panic(err)
	}
	return n
}
