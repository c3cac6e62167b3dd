package submit

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
)

// TestJobRunsOnRealPeers: four processes on two peers, one of which is the submitter's own,
// communicate, print once and provide their files.
func TestJobRunsOnRealPeers(t *testing.T) {
	b := &bed{T: t, own: newMember(t, 2), peers: []*member{newMember(t, 2)}}
	b.serve(0)
	b.meet()
	b.launching()
	b.own.launches(t)
	req := b.request(2, 2)
	req.Programs[0].Path = selfScript(t)
	req.Inputs = []filetransfer.Source{b.input("in/number", "20")}
	req.Outputs, req.OutputDir = []string{"log", "s*"}, t.TempDir()
	o := b.run(req, func(e Event) error {
		if jobs := b.submitter.Jobs(); e.Phase == Running && (len(jobs) != 1 || jobs[0].Job != e.Job || jobs[0].Name != "prog") {
			t.Errorf("while it runs, the jobs are %+v", jobs)
		}
		return nil
	})
	o.want(job.StatusOK, "")
	for rank, name := range []string{"rank 0", "rank 1"} {
		var want strings.Builder
		for line := range 3 {
			want.WriteString(name + " line " + string(rune('0'+line)) + " sum 41\n")
		}
		o.wrote(rank, job.Stdout, want.String())
		o.wrote(rank, job.Stderr, "")
	}
	if got, want := folder(t, req.OutputDir), "rank0/log=rank 0 rank1/log=rank 1 sum=41"; got != want {
		t.Errorf("collected %q, want %q", got, want)
	}
	if got, want := o.phases(), "discovering reserving staging starting running collecting releasing"; got != want {
		t.Errorf("phases %q, want %q", got, want)
	}
	if text := o.texts(); text != "" {
		t.Errorf("the user was told %q", text)
	}
}

func TestT1ContentsAreSentOnceAndVerified(t *testing.T) {
	b := newBed(t, 0, 2).launching()
	req := b.request(2, 1)
	req.Programs[0].Path = script(t, `cat in/text`)
	req.Inputs = []filetransfer.Source{b.input("in/text", "word for word\n")}
	var sent [2]int64
	for i := range sent {
		o := b.run(req, nil)
		o.want(job.StatusOK, "")
		o.wrote(0, job.Stdout, "word for word\n")
		o.wrote(1, job.Stdout, "word for word\n")
		o.told("the program never called mpj.Init")
		sent[i] = b.own.files.Stats().BytesSent
	}
	if sent[0] == 0 || sent[1] != sent[0] {
		t.Errorf("after the first job %d bytes were sent, after the second %d; want as many", sent[0], sent[1])
	}
}

// TestR6OutputResumesWhereTheLostMasterStopped closes the peer of the master when the user has part
// of its output.
func TestR6OutputResumesWhereTheLostMasterStopped(t *testing.T) {
	b := newBed(t, 0, 1, 1).launching()
	gate := t.TempDir() + "/gate"
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	req := b.request(1, 2)
	req.Programs[0].Path = script(t, `echo one; echo two; : <`+gate+`; echo three; printf four`)
	var placed []Placed
	o := b.run(req, func(e Event) error {
		if e.Kind == PlacedEvent {
			placed = e.Placed
		}
		if strings.HasSuffix(string(e.Data), "two\n") {
			for _, p := range placed {
				if p.Process == proc(0, 0) {
					b.peer(p.Peer).close()
				}
			}
			f, err := os.OpenFile(gate, os.O_RDWR, 0) // lets the other replica continue
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
		}
		return nil
	})
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "one\ntwo\nthree\nfour")
	o.told("replica 1 is its master now")
	if v := o.view(); v.State(proc(0, 0)) != view.Failed || v.State(proc(0, 1)) != view.Finished {
		t.Errorf("last view %+v", v)
	}
}

func TestInvalidRequestIsAUsageError(t *testing.T) {
	b := newBed(t, never)
	cases := map[string]struct {
		damage func(*Request)
		says   string
	}{
		"no ranks":          {func(r *Request) { r.N = 0 }, "-n is 0"},
		"no replicas":       {func(r *Request) { r.R = 0 }, "-r is 0"},
		"too many":          {func(r *Request) { r.N, r.R = 1<<15, 3 }, "at most 65536 processes"},
		"no program":        {func(r *Request) { r.Programs = nil }, "no program"},
		"program is gone":   {func(r *Request) { r.Programs[0].Path = "/nowhere/prog" }, "/nowhere/prog"},
		"program is empty":  {func(r *Request) { r.Programs[0].Path = b.input("", "").From }, "the file is empty"},
		"input is gone":     {func(r *Request) { r.Inputs = []filetransfer.Source{{Path: "a", From: "/nowhere/a"}} }, "/nowhere/a"},
		"strategy":          {func(r *Request) { r.Strategy = "fastest" }, `strategy "fastest"`},
		"pattern":           {func(r *Request) { r.Outputs, r.OutputDir = []string{"["}, "/" }, `-o "["`},
		"pattern leads out": {func(r *Request) { r.Outputs, r.OutputDir = []string{"../x"}, "/" }, `-o "../x": want a path below`},
		"folder is gone":    {func(r *Request) { r.Outputs, r.OutputDir, r.NewFolder = []string{"x"}, "/nowhere", true }, "output folder: stat /nowhere"},
		"parent is gone":    {func(r *Request) { r.Outputs, r.OutputDir = []string{"x"}, "/nowhere/results" }, "output folder: stat /nowhere"},
		"arguments":         {func(r *Request) { r.Args = []string{strings.Repeat("x", 1<<20)} }, "description has"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req := b.in(t).request(1, 1)
			c.damage(&req)
			b.run(req, nil).want(job.StatusUsage, c.says)
		})
	}
	b.in(t)
}

func TestShortageMessage(t *testing.T) {
	b := newBed(t, never, 1, 1)
	b.play(func(*part) { t.Error("a job was staged without enough slots") })
	other := b.request(2, 2)
	other.Programs[0].OS = "plan9"
	cases := map[string]struct {
		req  Request
		says string
	}{
		"too few slots":    {b.request(2, 2), "found 2 of the 4 slots needed (-n 2 -r 2) within 0s"},
		"too few peers":    {b.request(1, 3), "found slots on 2 peers within 0s: the 3 replicas of a rank (-r) must be on different machines"},
		"another platform": {other, "found 0 of the 4 slots needed (-n 2 -r 2) within 0s; passed over: 2 other platform"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.req.Wait = 0
			o := b.in(t).run(c.req, nil)
			o.want(job.StatusShortage, c.says)
			if o.Hint == "" {
				t.Error("no hint")
			}
		})
	}
	b.in(t)
}

// TestJobWaitsForSlots: a job with -w waits until another job ends.
func TestJobWaitsForSlots(t *testing.T) {
	b := newBed(t, never, 1)
	second := make(chan *outcome, 1)
	release := make(chan struct{})
	b.play(func(p *part) {
		p.start()
		if p.number == 0 {
			<-release
		}
		p.ends(proc(0, 0))
	})
	var waits int
	first := b.run(b.request(1, 1), func(e Event) error {
		if e.Phase == Running {
			go func() { // ends with the second job
				second <- b.run(b.request(1, 1), func(e Event) error {
					if e.Phase == Waiting {
						if e.Queue == nil || e.Queue.Place != 1 || e.Queue.Of != 1 || e.Queue.Left <= 0 || e.Total != 1 {
							t.Errorf("while it waits the user is told %+v of %d slots", e.Queue, e.Total)
						}
						if waits++; waits == 2 {
							close(release)
						}
					}
					return nil
				})
			}()
		}
		return nil
	})
	if first.Status != job.StatusOK {
		t.Errorf("first job: %+v", first.Result)
	}
	select {
	case o := <-second:
		o.want(job.StatusOK, "")
	case <-time.After(eventTimeout):
		t.Fatal("the second job did not end")
	}
}
