package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// A behaviour is what a simulated job does, in place of a Submitter.
type behaviour func(context.Context, *fakeJob)

// A fakeJob is a simulated job whose events the test determines.
type fakeJob struct {
	id     string
	events *submit.EventQueue
}

func (s *fakeJob) say(e submit.Event) {
	e.Job = s.id
	s.events.Put(e)
}

// write emits the records from first to last of rank 0.
func (s *fakeJob) write(first, last int) {
	for i := first; i <= last; i++ {
		s.say(submit.Event{Kind: submit.OutputEvent, Stream: job.Stdout, Record: uint64(i), Data: fmt.Appendf(nil, "%d ", i)})
	}
}

// end emits the result, and returns when the user has it.
func (s *fakeJob) end(r job.Result) {
	s.say(submit.Event{Kind: submit.ResultEvent, Result: &r})
	s.events.Flush()
}

// A jobsPeer is a peer that has only a control socket. The jobs submitted to it are simulated.
type jobsPeer struct {
	*Jobs
	server *http.Server
	served sync.WaitGroup
	end    context.CancelFunc
}

const fakeJobID = "0123456789abcdef"

func newJobsPeer(t *testing.T, dir string, act behaviour) *jobsPeer {
	t.Helper()
	life, end := context.WithCancel(context.Background())
	c := NewJobs(life, nil)
	run := func(ctx context.Context, events *submit.EventQueue) { act(ctx, &fakeJob{fakeJobID, events}) }
	mux := http.NewServeMux()
	real := http.NewServeMux()
	for pattern, handle := range c.Handlers() {
		real.HandleFunc(pattern, handle)
	}
	mux.Handle("/", real)
	mux.HandleFunc("POST /v1/jobs", func(w http.ResponseWriter, r *http.Request) {
		h, err := c.followJob("", time.Hour, nil, run)
		if err != nil {
			t.Error(err)
			return
		}
		c.streamEvents(w, r, h)
	})
	mux.HandleFunc("POST /v1/jobs/{id}/attach", func(w http.ResponseWriter, r *http.Request) {
		if _, err := c.find(fakeJobID); err == nil {
			c.attachJob(w, r)
			return
		}
		h, err := c.followJob(fakeJobID, time.Hour, nil, run) // as if it was kept
		if err != nil {
			t.Error(err)
			return
		}
		c.streamEvents(w, r, h)
	})
	l, err := listenUnix(life, socketIn(dir))
	if err != nil {
		t.Fatal(err)
	}
	th := &jobsPeer{Jobs: c, server: &http.Server{Handler: mux, ReadHeaderTimeout: deadline}, end: end}
	th.served.Go(func() { th.server.Serve(l) }) // ends with kill
	t.Cleanup(th.kill)
	return th
}

// kill ends the peer like SIGKILL, without any message to its clients.
func (th *jobsPeer) kill() {
	th.server.Close()
	th.end()
	th.Cancel(errors.New("killed"))
	th.served.Wait()
	th.jobs.Wait()
}

// user collects the events that are shown.
type user struct {
	text strings.Builder
	said []string
}

func (u *user) show(e submit.Event) error {
	u.text.Write(e.Data)
	if e.Text != "" {
		u.said = append(u.said, e.Text)
	}
	return nil
}

func numbers(first, last int) string {
	var b strings.Builder
	for i := first; i <= last; i++ {
		fmt.Fprintf(&b, "%d ", i)
	}
	return b.String()
}

func socketIn(dir string) string { return filepath.Join(dir, "control.sock") }

func dialDir(t *testing.T, dir string) *Client {
	t.Helper()
	c, err := dialSocket(t.Context(), dir, socketIn(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

var succeeded = job.Result{Status: job.StatusOK, Message: "as it was"}

// TestR6HandedOverJobSurvivesItsListener kills a p2prun that has acknowledged a part of the events. The next
// one receives the rest and the result.
func TestR6HandedOverJobSurvivesItsListener(t *testing.T) {
	dir := shortDir(t)
	newJobsPeer(t, dir, func(ctx context.Context, s *fakeJob) {
		s.say(submit.Event{Kind: submit.KeptEvent})
		s.write(1, 1000)
		s.events.Flush()
		s.end(succeeded)
	})
	client := dialDir(t, dir)
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	resp, err := client.do(ctx, http.MethodPost, "/v1/jobs", nil)
	if err != nil {
		t.Fatal(err)
	}
	if at := resp.Header.Get("Location"); at != "/v1/jobs/"+fakeJobID {
		t.Errorf("the job is at %q", at)
	}
	if _, err := client.Attach(t.Context(), submit.Kept{Job: fakeJobID}, false, nil); err == nil || !strings.Contains(err.Error(), errHasListener.Error()) {
		t.Errorf("two listeners were accepted: %v", err)
	}
	var told line
	for in := bufio.NewReader(resp.Body); told.Record < 300 && err == nil; {
		told, err = readLine(in)
	}
	if err != nil {
		t.Fatal(err)
	}
	client.acknowledge(t.Context(), fakeJobID, told.Number)
	kill()
	resp.Body.Close()
	var u user
	r, err := attachSoon(t, client, &u)
	if err != nil || r != succeeded {
		t.Errorf("the attachment ended with %+v, %v", r, err)
	}
	if got, want := u.text.String(), numbers(301, 1000); got != want {
		t.Errorf("got %.80q, want %.80q", got, want)
	}
}

// attachSoon attaches once the peer has noticed that the job has no listener.
func attachSoon(t *testing.T, client *Client, u *user) (job.Result, error) {
	t.Helper()
	for begun := time.Now(); ; {
		r, err := client.Attach(t.Context(), submit.Kept{Job: fakeJobID}, false, u.show)
		if _, refused := errors.AsType[*RefusedError](err); !refused || time.Since(begun) > deadline {
			return r, err
		}
	}
}

// TestR6ListenerSurvivesItsPeer kills the peer. The next peer on the home knows only the acknowledged
// events and repeats the others; the user does not see them twice.
func TestR6ListenerSurvivesItsPeer(t *testing.T) {
	dir := shortDir(t)
	first := newJobsPeer(t, dir, func(ctx context.Context, s *fakeJob) {
		s.say(submit.Event{Kind: submit.KeptEvent})
		s.write(1, 100)
		<-ctx.Done()
		s.end(job.Result{Status: job.StatusCancelled})
	})
	client := dialDir(t, dir)
	var u user
	r, err := client.Run(t.Context(), submit.Request{Away: time.Hour}, func(e submit.Event) error {
		switch {
		case e.Record == 100:
			first.server.Close()
		case e.Kind == submit.WarningEvent:
			first.kill()
			newJobsPeer(t, dir, func(ctx context.Context, s *fakeJob) {
				s.write(51, 200)
				s.events.Flush()
				s.end(succeeded)
			})
		}
		return u.show(e)
	})
	if err != nil || r != succeeded {
		t.Errorf("the attachment ended with %+v, %v", r, err)
	}
	if got, want := u.text.String(), numbers(1, 200); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(u.said) != 1 || !strings.Contains(u.said[0], "waiting up to 1h0m0s for a new p2pboot") {
		t.Errorf("the user was told %q", u.said)
	}
}

// TestErrorForALostPeerExplainsHowToAttach checks the error for a user who does not wait for another peer.
func TestErrorForALostPeerExplainsHowToAttach(t *testing.T) {
	for name, away := range map[string]time.Duration{"cancelled": time.Hour, "too late": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			dir := shortDir(t)
			first := newJobsPeer(t, dir, func(ctx context.Context, s *fakeJob) {
				s.say(submit.Event{Kind: submit.KeptEvent})
				<-ctx.Done()
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := dialDir(t, dir).Run(ctx, submit.Request{Away: away}, func(e submit.Event) error {
				if e.Kind == submit.KeptEvent {
					first.server.Close()
				} else if name == "cancelled" {
					cancel()
				}
				return nil
			})
			if left, ok := errors.AsType[*LeftError](err); !ok || left.Job != fakeJobID {
				t.Errorf("the attachment ended with %v", err)
			}
		})
	}
}

// TestS4HandedOverJobEnds checks that a job ends when it is cancelled, when its p2prun does not accept its
// output, and when its p2prun disconnects before the job is kept.
func TestS4HandedOverJobEnds(t *testing.T) {
	for name, kept := range map[string]bool{"cancel": true, "broken pipe": true, "disconnect": false} {
		t.Run(name, func(t *testing.T) {
			dir, ended := shortDir(t), make(chan error, 1)
			newJobsPeer(t, dir, func(ctx context.Context, s *fakeJob) {
				if kept {
					s.say(submit.Event{Kind: submit.KeptEvent})
				}
				s.write(1, 10)
				<-ctx.Done()
				s.end(job.Result{Status: job.StatusCancelled})
				ended <- context.Cause(ctx)
			})
			client := dialDir(t, dir)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if name == "disconnect" {
				resp, err := client.do(ctx, http.MethodPost, "/v1/jobs", nil)
				if err != nil {
					t.Fatal(err)
				}
				cancel()
				resp.Body.Close()
			} else if _, err := client.Run(ctx, submit.Request{}, func(e submit.Event) error {
				if name == "cancel" {
					cancel()
				} else if e.Kind == submit.OutputEvent {
					return errors.New("broken pipe")
				}
				return nil
			}); err == nil {
				t.Error("the attachment returned no error")
			}
			select {
			case err := <-ended:
				if kept != errors.Is(err, context.Canceled) {
					t.Errorf("the job ended because %v", err)
				}
			case <-time.After(deadline):
				t.Fatal("the job continues")
			}
		})
	}
}

// TestS4HandedOverJobWithoutAListenerIsCancelled checks that a job without a listener for too long is
// cancelled, and that a listener in time prevents this.
func TestS4HandedOverJobWithoutAListenerIsCancelled(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancelCause(t.Context())
		h := &handed{events: submit.NewEventQueue(""), end: end, over: make(chan struct{}), away: time.Minute, hasListener: true}
		s := &fakeJob{fakeJobID, h.events}
		s.say(submit.Event{Kind: submit.KeptEvent})
		s.write(1, 1)
		for _, listens := range []time.Duration{2 * h.away, 0, 0} { // the last wait is too long
			h.removeListener()
			time.Sleep(h.away - time.Second)
			if h.withoutListenerSince().IsZero() || ctx.Err() != nil {
				t.Fatalf("the job ended too early: %v", context.Cause(ctx))
			}
			if err := h.addListener(); err != nil || !h.withoutListenerSince().IsZero() {
				t.Fatal(err)
			}
			if err := h.addListener(); !errors.Is(err, errHasListener) {
				t.Errorf("two listeners were accepted: %v", err)
			}
			time.Sleep(listens)
		}
		h.removeListener()
		h.expire(h.times - 1) // its timer had already fired when the listener came
		if ctx.Err() != nil {
			t.Fatalf("the job ended too early: %v", context.Cause(ctx))
		}
		time.Sleep(h.away)
		synctest.Wait()
		if cause := context.Cause(ctx); cause == nil || !strings.Contains(cause.Error(), "no p2prun has attached within 1m0s") {
			t.Errorf("cause %v", cause)
		}
		if err := h.addListener(); !errors.Is(err, errOver) {
			t.Errorf("a listener was added to a job that ends: %v", err)
		}
		if s.write(2, 2); len(h.events.After(0)) > 0 {
			t.Error("the output of the job waits forever")
		}
		s.events.Flush()
		h.close()
	})
}

// TestCancelBeforeTheFirstEvent checks that a client can attach and cancel the job before the job has
// emitted any event.
func TestCancelBeforeTheFirstEvent(t *testing.T) {
	dir, begun, ended := shortDir(t), make(chan bool, 1), make(chan error, 1)
	newJobsPeer(t, dir, func(ctx context.Context, s *fakeJob) {
		begun <- true
		<-ctx.Done()
		ended <- context.Cause(ctx)
	})
	client := dialDir(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // ends when the job begins, or with the test
		select {
		case <-begun:
			cancel()
		case <-t.Context().Done():
		}
	}()
	if _, err := client.Attach(ctx, submit.Kept{Job: fakeJobID}, false, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Attach returned %v", err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the job ended because %v", err)
		}
	case <-time.After(deadline):
		t.Fatal("the job continues")
	}
}

// TestKeptJobCanBeCancelledWithoutResuming checks that a kept job can be cancelled without being resumed,
// which may be impossible. The peer keeps no state of it.
func TestKeptJobCanBeCancelledWithoutResuming(t *testing.T) {
	life, end := context.WithCancel(t.Context())
	defer end()
	c := NewJobs(life, nil)
	var why []error
	for _, cause := range []error{context.Canceled, nil} {
		var its context.Context
		_, err := c.followJob(fakeJobID, time.Hour, cause, func(ctx context.Context, _ *submit.EventQueue) {
			its = ctx
			why = append(why, context.Cause(ctx))
		})
		if err != nil {
			t.Fatal(err)
		}
		c.jobs.Wait()
		if its.Err() == nil {
			t.Error("the context of a job that is over has not ended")
		}
	}
	if len(why) != 2 || !errors.Is(why[0], context.Canceled) || why[1] != nil {
		t.Errorf("the jobs were begun with the errors %v", why)
	}
}
