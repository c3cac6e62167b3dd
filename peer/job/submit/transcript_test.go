package submit

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// shownEvent returns output of a rank that the user has received: whole lines, the last of which has
// number next.
func shownEvent(rank int, s job.Stream, next uint64, lines ...string) Event {
	e := outputEvent(rank, s, []byte(strings.Join(lines, "")))
	e.Record, e.Records = next, uint64(len(lines))
	return e
}

// TestTranscriptSurvivesResumes: the transcript of each rank survives any number of processes that
// follow the job.
func TestTranscriptSurvivesResumes(t *testing.T) {
	s, k := keeping(t)
	for _, e := range []Event{
		shownEvent(0, job.Stdout, 2, "a\n", "bb\n"), shownEvent(0, job.Stderr, 1, "no\n"),
		shownEvent(1, job.Stdout, 1, "x\n"), shownEvent(1, job.Stdout, 3, "z\n"), // the second line was not recorded
		shownEvent(0, job.Stdout, 3, "c\n"),
	} {
		if err := k.note(e); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		k.close()
		var err error
		if k, err = s.reopen(k.kept.Job); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.note(shownEvent(0, job.Stdout, 4, "d\n")); err != nil {
		t.Fatal(err)
	}
	counts, out, err := k.positions()
	if err != nil || !slices.Equal(counts, [][2]uint64{{4, 1}, {3, 0}}) {
		t.Fatalf("counts %v, %v", counts, err)
	}
	if got, ok := out[0].with([]byte("end")); !ok || got != printedText("a\nbb\nc\nd\nend") {
		t.Errorf("rank 0: %v, known: %v", got, ok)
	}
	if got, ok := out[1].with(nil); ok {
		t.Errorf("rank 1, a line of which is missing: %v", got)
	}
	k.close()
}

func printedText(text string) job.Printed {
	return job.Printed{Bytes: uint64(len(text)), Digest: sha256.Sum256([]byte(text))}
}

func TestTranscriptWithoutOutput(t *testing.T) {
	unwritten := decodeTranscript([transcriptSize]byte{})
	if got, ok := unwritten.with(nil); !ok || got != printedText("") {
		t.Errorf("got %v, known: %v", got, ok)
	}
	b := [transcriptSize]byte{15: 1, 100: 7}
	damaged := decodeTranscript(b)
	if got, ok := damaged.with(nil); ok {
		t.Errorf("decoded an invalid digest state: %v", got)
	}
}

// TestV4ResumedJobComparesEarlierOutput: a replica whose account differs from the output shown
// before the resume is detected. If part of the output was not recorded, nothing is compared, and
// the job ends as its replicas report.
func TestV4ResumedJobComparesEarlierOutput(t *testing.T) {
	skip.Long(t)
	for name, tt := range map[string]struct {
		before Event
		status int
	}{
		"all replicas account for it":   {shownEvent(0, job.Stdout, 1, "a\n"), job.StatusOK},
		"no replica accounts for it":    {shownEvent(0, job.Stdout, 1, "A\n"), job.StatusDiverged},
		"part of it was never recorded": {shownEvent(0, job.Stdout, 1), job.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, never, 1, 1)
			k := b.keptOn(2)
			if err := k.note(tt.before); err != nil {
				t.Fatal(err)
			}
			scripts := make(map[view.Process]func(*part))
			for i := range 2 {
				q := proc(0, i)
				scripts[q] = func(p *part) {
					p.back()
					if i == 0 {
						p.writes(q, 1, "b\n")
						p.closes(q, 2)
					}
					digest := sha256.Sum256([]byte("a\nb\n"))
					p.say(exitedMessage(q, wellEnded))
					p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Account{Account: &jobpb.Account{
						Process: jobpb.FromProcess(q), Digested: true, Printed: 4, Digest: digest[:],
					}}})
				}
			}
			message := ""
			if tt.status == job.StatusDiverged {
				message = "printed 4 bytes"
			}
			b.attach(k, scripts).want(tt.status, message)
		})
	}
}
