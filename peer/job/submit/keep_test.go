package submit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// keeping returns a submitter that keeps its jobs, and one kept job.
func keeping(t *testing.T) (*Submitter, *keeper) {
	t.Helper()
	b := newBed(t, never)
	b.submitter.cfg.Jobs = filepath.Join(t.TempDir(), "jobs")
	req := b.request(2, 2)
	req.Away, req.Timeout = time.Minute, time.Hour
	k, err := b.submitter.keep(newRun(b.submitter, req))
	if err != nil {
		t.Fatal(err)
	}
	if err := k.write(); err != nil {
		t.Fatal(err)
	}
	return b.submitter, k
}

func TestKeptJobRoundTrip(t *testing.T) {
	s, k := keeping(t)
	id := k.kept.Job
	if _, err := s.reopen(id); err == nil || errors.Is(err, errNotKept) {
		t.Errorf("two follow it: %v", err)
	}
	for rank, counts := range [][2]uint64{{1 << 40, 0}, {0, 7}} {
		for i, n := range counts {
			if err := errors.Join(k.note(shownEvent(rank, job.Stream(i+1), 3)), k.note(shownEvent(rank, job.Stream(i+1), n))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if k.kept.Handed() {
		t.Error("the identity of the submitter is not kept")
	}
	if err := k.writeBegin(&jobpb.Begin{Keys: []byte("keys")}); err != nil {
		t.Fatal(err)
	}
	want := k.kept
	k.close()
	again, err := s.reopen(id)
	if err != nil {
		t.Fatal(err)
	}
	got := again.kept
	if !got.Since.Equal(want.Since) || !got.Ends.Equal(want.Since.Add(time.Hour)) {
		t.Errorf("times %v %v", got.Since, got.Ends)
	}
	if got.Since, got.Ends = want.Since, want.Ends; !reflect.DeepEqual(got, want) {
		t.Errorf("kept %+v, want %+v", got, want)
	}
	key, err := got.Key()
	if err != nil || !key.Equals(s.cfg.Key) {
		t.Errorf("another identity, %v", err)
	}
	if shown, _, err := again.positions(); err != nil || !reflect.DeepEqual(shown, [][2]uint64{{1 << 40, 0}, {0, 7}}) {
		t.Errorf("positions %v, %v", shown, err)
	}
	if begin, err := again.begin(); err != nil || string(begin.GetBegin().GetKeys()) != "keys" {
		t.Errorf("begin %v, %v", begin, err)
	}
	all, err := Keeping(s.cfg.Jobs)
	if err != nil || len(all) != 1 || all[0].Job != id {
		t.Errorf("keeping %v, %v", all, err)
	}
	again.remove()
	again.close()
	if all, err := Keeping(s.cfg.Jobs); err != nil || len(all) != 0 {
		t.Errorf("keeping %v, %v; want none", all, err)
	}
}

// TestKeepRefusesInvalidJobs covers jobs that cannot be resumed, and names that would lead out of the
// directory.
func TestKeepRefusesInvalidJobs(t *testing.T) {
	s, k := keeping(t)
	bad := filepath.Join(s.cfg.Jobs, "bad")
	if err := os.MkdirAll(bad, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bad, "job"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", "other", "bad", ".", "..", "../jobs/" + k.kept.Job} {
		if _, err := s.reopen(id); !errors.Is(err, errNotKept) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if r := s.Attach(t.Context(), "other", Showing(nil)); r.Status != job.StatusUsage {
		t.Errorf("attached: %+v", r)
	}
	all, err := Keeping(s.cfg.Jobs)
	if err != nil || len(all) != 1 {
		t.Errorf("keeping %v, %v", all, err)
	}
	req := k.kept.Request
	for name, change := range map[string]func(*Request){
		"no replicas":      func(r *Request) { r.R = 1 },
		"ends when silent": func(r *Request) { r.Away = 0 },
	} {
		r := req
		change(&r)
		if k, err := s.keep(newRun(s, r)); k != nil || err != nil {
			t.Errorf("%s: kept, %v", name, err)
		}
	}
	k.close()
}

// TestJobOfAnotherReleaseIsNotResumed: the record of such a job may be of another form. It stays for that release.
func TestJobOfAnotherReleaseIsNotResumed(t *testing.T) {
	for name, tt := range map[string]struct{ old, new, want string }{
		"another protocol": {fmt.Sprintf(`"protocol":%d`, version.Protocol), `"protocol":7`, "release " + version.Release + " (protocol 7), and this is"},
		"no version":       {fmt.Sprintf(`"protocol":%d,"release":%q,`, version.Protocol, version.Release), "", "an earlier release"},
		"another form":     {fmt.Sprintf(`"protocol":%d,"release":%q,"request":{`, version.Protocol, version.Release), `"protocol":7,"release":"0.0.7","request":[],"was":{`, "release 0.0.7 (protocol 7)"},
	} {
		t.Run(name, func(t *testing.T) {
			s, k := keeping(t)
			file := filepath.Join(k.dir, "job")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(text), tt.old, tt.new, 1)
			if changed == string(text) {
				t.Fatalf("no %s in %s", tt.old, text)
			}
			if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			k.close()
			if r := s.Attach(t.Context(), k.kept.Job, Showing(nil)); r.Status != job.StatusUsage || !strings.Contains(r.Message, tt.want) {
				t.Errorf("attached: %+v, want %q", r, tt.want)
			}
			all, err := Keeping(s.cfg.Jobs)
			if err != nil || len(all) != 1 || all[0].CheckVersion() == nil || all[0].Handed() {
				t.Errorf("keeping %+v, %v", all, err)
			}
		})
	}
}

// TestJobWithAResultIsNotResumable: the peers of a job with a result have been told to stop, and
// forget it. The output that the user has yet to see is kept with the result.
func TestJobWithAResultIsNotResumable(t *testing.T) {
	for status, over := range map[int]bool{job.StatusOK: true, 5: true, job.StatusCancelled: false} {
		_, k := keeping(t)
		want := job.Result{Status: status, Message: "as it was"}
		if err := k.writeResult(want, nil); err != nil {
			t.Fatal(err)
		}
		k.leave(1)
		k.delivered()
		k.conclude(t.Context())
		k.close()
		if _, err := os.Stat(k.dir); (err != nil) != over {
			t.Errorf("status %d with a peer that has not heard of it: %v", status, err)
		}
	}
	s, k := keeping(t)
	want := job.Result{Status: 5, Message: "as it was"}
	rest := []Output{
		{Rank: 1, Stream: job.Stdout, Record: 7, Data: []byte("seen ")},
		{Rank: 1, Stream: job.Stdout, Record: 8, Data: []byte("last ")},
		{Rank: 0, Stream: job.Stderr, Data: []byte("tail")},
	}
	if err := errors.Join(k.note(shownEvent(1, job.Stdout, 6)), k.writeResult(want, rest), k.note(shownEvent(1, job.Stdout, 7))); err != nil {
		t.Fatal(err)
	}
	k.close()
	got := ""
	if r := s.Attach(t.Context(), k.kept.Job, Showing(func(e Event) error {
		got += string(e.Data)
		return nil
	})); r != want || got != "last tail" {
		t.Errorf("attached: %+v, %q", r, got)
	}
	if _, err := os.Stat(k.dir); err == nil {
		t.Error("the job is still kept")
	}
}

// TestUnseenResultOfAResumedJobIsKept: the process ends before the user has the result. A user
// who has cancelled the job does not want it.
func TestUnseenResultOfAResumedJobIsKept(t *testing.T) {
	want := job.Result{Status: 5, Message: "as it was"}
	ending := errors.New("the peer is ending")
	for why, kept := range map[error]bool{ending: true, context.Canceled: false} {
		s, k := keeping(t)
		if err := k.writeResult(want, []Output{{Rank: 1, Stream: job.Stdout, Record: 1, Data: []byte("last ")}}); err != nil {
			t.Fatal(err)
		}
		k.close()
		ctx, end := context.WithCancelCause(t.Context())
		s.Attach(ctx, k.kept.Job, reading(func(q *EventQueue, n Numbered) {
			if n.Kind == ResultEvent {
				end(why)
				q.Close(why)
			}
			q.Acknowledge(n.Number)
		}))
		if _, err := s.Kept(k.kept.Job); (err == nil) != kept {
			t.Errorf("ended because %v: kept %t, want %t", why, err == nil, kept)
		}
		if !kept {
			continue
		}
		got := ""
		r := s.Attach(t.Context(), k.kept.Job, Showing(func(e Event) error {
			got += string(e.Data)
			return nil
		}))
		if r != want || got != "" {
			t.Errorf("attached: %+v, %q", r, got)
		}
		if _, err := s.Kept(k.kept.Job); err == nil {
			t.Error("the job is still kept")
		}
	}
}

// TestUnseenResultOfAStartedJobIsKept: the same, in the process that started the job. A
// user who was not told that the job can be resumed does not look for it.
func TestUnseenResultOfAStartedJobIsKept(t *testing.T) {
	for _, tt := range []struct{ begins, taken, kept bool }{{true, false, true}, {true, true, false}, {false, false, false}} {
		b := newBed(t, never, 1, 1)
		b.submitter.cfg.Jobs = t.TempDir()
		b.play(func(p *part) {
			p.start()
			if tt.begins {
				p.enter()
			}
			p.ends(p.processes[0], "a\n")
		})
		req := b.request(1, 2)
		req.Away = time.Minute
		var r job.Result
		b.submitter.Run(t.Context(), req, reading(func(q *EventQueue, n Numbered) {
			if n.Kind == ResultEvent {
				if r = *n.Result; !tt.taken {
					q.Close(errors.New("the peer is ending"))
				}
			}
			q.Acknowledge(n.Number)
		}))
		all, err := Keeping(b.submitter.cfg.Jobs)
		if err != nil || r.Status != job.StatusOK || (len(all) == 1) != tt.kept {
			t.Errorf("%+v: kept %+v, %v; the result is %+v", tt, all, err, r)
		}
		if len(all) == 1 && (all[0].Result == nil || *all[0].Result != r) {
			t.Errorf("kept %+v, want %+v", all[0].Result, r)
		}
	}
}

// TestAttachRequiresAWritableOutputDirectory: a job whose files cannot be written is not resumed,
// and stays kept. A named directory is created, so only its parent has to exist.
func TestAttachRequiresAWritableOutputDirectory(t *testing.T) {
	for name, req := range map[string]Request{
		"the folder of a new folder": {OutputDir: filepath.Join(t.TempDir(), "gone"), NewFolder: true},
		"the parent of a named one":  {OutputDir: filepath.Join(t.TempDir(), "gone", "results")},
	} {
		t.Run(name, func(t *testing.T) {
			s, k := keeping(t)
			k.kept.Request.Outputs, k.kept.Request.OutputDir, k.kept.Request.NewFolder = []string{"*"}, req.OutputDir, req.NewFolder
			if err := k.write(); err != nil {
				t.Fatal(err)
			}
			k.close()
			for range 2 {
				r := s.Attach(t.Context(), k.kept.Job, Showing(nil))
				if r.Status != job.StatusUsage || !strings.Contains(r.Hint, "make the folder "+k.kept.Request.OutputDir) {
					t.Errorf("attached: %+v", r)
				}
			}
			over, cancel := context.WithCancel(t.Context())
			cancel()
			if r := s.Attach(over, k.kept.Job, Showing(func(Event) error { return nil })); r.Status != job.StatusCancelled {
				t.Errorf("cancelled: %+v", r)
			}
		})
	}
}

// TestR6UnwritableFilesAreKeptForAttach: such files stay at the peers, where the only copies
// are.
func TestR6UnwritableFilesAreKeptForAttach(t *testing.T) {
	b := newBed(t, never, 1, 1)
	b.submitter.cfg.Jobs = t.TempDir()
	req := b.request(1, 2)
	req.Outputs, req.OutputDir, req.Away = []string{"a"}, t.TempDir(), time.Minute
	b.play(func(p *part) {
		p.start()
		p.enter()
		q := p.processes[0]
		if q == proc(0, 0) {
			b.write(req.OutputDir+"/a", "a file where a folder is to go")
			p.ends(q, "unfinished")
			p.offers(q, map[string]string{"a/b": "1"})
		} else { // its files are not requested
			p.until(proc(0, 0), view.Finished)
			p.ends(q, "unfinished")
		}
		var err error
		for err == nil {
			m := &jobpb.ToPeer{}
			if err = p.in.ReadMsg(m); m.GetStop() != nil {
				t.Error("told to stop")
			}
		}
		if end, ok := errors.AsType[*network.StreamError](err); ok && end.ErrorCode == jobpb.Left {
			t.Error("the submitter left the job permanently")
		}
		p.vanish()
	})
	o := b.run(req, nil)
	o.want(job.StatusUsage, "its output files could not be written")
	o.wrote(0, job.Stdout, "") // a later attach prints it
	all, err := Keeping(b.submitter.cfg.Jobs)
	if err != nil || len(all) != 1 || all[0].Result != nil || !strings.Contains(o.Hint, "p2prun --attach "+all[0].Job[:8]) {
		t.Errorf("kept %+v, %v; said %q", all, err, o.Hint)
	}
}

// TestJobThatCannotBeKeptStillRuns: such a job runs, and its peers end with the submitter.
func TestJobThatCannotBeKeptStillRuns(t *testing.T) {
	b := newBed(t, never, 1, 1)
	b.submitter.cfg.Jobs = t.TempDir()
	b.play(func(p *part) {
		if err := os.RemoveAll(filepath.Join(b.submitter.cfg.Jobs, p.spec.ID)); err != nil {
			t.Error(err)
		}
		p.prepared("")
		if await(p, (*jobpb.ToPeer).GetStart).Returns {
			t.Error("told to wait for another process")
		}
		p.say(startedMessage(""))
		p.joining = await(p, (*jobpb.ToPeer).GetJoin)
		p.agree()
		p.ends(p.processes[0], "a\n")
	})
	req := b.request(1, 2)
	req.Away = time.Minute
	o := b.run(req, nil)
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\n")
	o.told("the job ends with this process, since it cannot be kept")
	if strings.Contains(o.texts(), "some output may be shown twice") {
		t.Errorf("the user was told %q", o.texts())
	}
}

// TestUnresumableJobsAreRemoved: a job that can no longer be resumed is removed with its
// private key. A job that a process follows, or has followed recently, stays.
func TestUnresumableJobsAreRemoved(t *testing.T) {
	old := time.Now().Add(-keptFor - time.Minute)
	for name, tt := range map[string]struct {
		damage func(*keeper)
		gone   bool
	}{
		"no process follows it": {func(k *keeper) { k.close() }, true},
		"not described yet":     {func(k *keeper) { k.close(); os.Remove(filepath.Join(k.dir, "job")) }, true},
		"a process follows it":  {func(*keeper) {}, false},
	} {
		for _, lately := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, lately %v", name, lately), func(t *testing.T) {
				s, k := keeping(t)
				defer k.close()
				tt.damage(k)
				files, err := filepath.Glob(filepath.Join(k.dir, "*"))
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range append(files, k.dir) {
					if err := os.Chtimes(f, old, old); err != nil {
						t.Fatal(err)
					}
				}
				if lately {
					k.touch()
				}
				if _, err := Keeping(s.cfg.Jobs); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(k.dir); (err != nil) != (tt.gone && !lately) {
					t.Errorf("afterwards: %v", err)
				}
			})
		}
	}
}

// TestHandedOverJobKeepsNoKey: only the home's own peer can resume such a job.
func TestHandedOverJobKeepsNoKey(t *testing.T) {
	s, own := keeping(t)
	defer own.close()
	s.cfg.Resident = true
	j := newRun(s, own.kept.Request)
	k, err := s.keep(j)
	if err == nil {
		err = k.write()
	}
	if err != nil {
		t.Fatal(err)
	}
	k.close()
	kept, err := s.Kept(j.spec.ID)
	if err != nil || !kept.Handed() {
		t.Errorf("kept %+v, %v", kept, err)
	}
	if _, err := kept.Key(); err == nil {
		t.Error("the handed-over job has a key")
	}
	if _, err := s.Kept(own.kept.Job); !errors.Is(err, errNotKept) {
		t.Errorf("another's job: %v", err)
	}
	s.cfg.Resident = false
	if _, err := s.reopen(j.spec.ID); !errors.Is(err, errNotKept) {
		t.Errorf("the home's job: %v", err)
	}
}

// TestRecruitIsRecordedBeforeItIsAnnounced: a process that resumes the job knows each process
// that may be in a view.
func TestRecruitIsRecordedBeforeItIsAnnounced(t *testing.T) {
	b := newBed(t, never, 1, 1, 1)
	b.submitter.cfg.Jobs = t.TempDir()
	kept := func() (ps []view.Process) {
		all, err := Keeping(b.submitter.cfg.Jobs)
		if err != nil || len(all) != 1 {
			t.Errorf("kept %v, %v", all, err)
			return nil
		}
		for _, k := range all[0].Peers {
			ps = append(ps, k.Processes...)
		}
		return ps
	}
	watch, healed := untilHealed()
	b.play(func(p *part) {
		p.start()
		p.enter()
		switch q := p.processes[0]; q.Replica {
		case 0:
			p.vanish()
		case 1:
			await(p, (*jobpb.ToPeer).GetJoined)
			if ps := kept(); !slices.Contains(ps, proc(0, 2)) {
				t.Errorf("kept %v", ps)
			}
			<-healed
			p.ends(q)
		default:
			p.caughtUp(q)
			<-healed
			p.ends(q)
		}
	})
	req := b.healing()
	req.Away = time.Minute
	b.run(req, watch).want(job.StatusOK, "")
}
