package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// A listener follows a submitted job on behalf of p2prun, over the control socket. It acknowledges the
// events that it has shown. If the job survives the end of its peer, the listener continues with the next
// peer.
type listener struct {
	client *Client
	emit   func(submit.Event) error
	away   time.Duration // time to wait for another peer on the home

	id    string                // ID of the job, or "" until known
	kept  bool                  // another peer can resume the job
	shown map[job.Source]uint64 // number of records already shown
}

// A LeftError means that a job continues without a listener: its peer has ended, and no other peer has started
// before the waiting time or the context ended.
type LeftError struct {
	Job string
	Err error
}

// Error describes the cause.
func (e *LeftError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *LeftError) Unwrap() error { return e.Err }

// follow shows the events of a job until its result. begin opens the first stream of events. When ctx ends,
// follow cancels the job.
func (l *listener) follow(ctx context.Context, begin func(context.Context) (*http.Response, error)) (job.Result, error) {
	for {
		r, err := l.showEvents(ctx, begin)
		if !errors.Is(err, errBroken) {
			return r, err
		}
		if !l.kept {
			return r, fmt.Errorf("the peer on home %s ended before the job did", l.client.home)
		}
		if err := l.warn(fmt.Sprintf("the p2pboot on home %s has ended; the job continues without it; waiting up to %v for a new p2pboot on that home", l.client.home, l.away)); err != nil {
			return r, err
		}
		begin = l.await
	}
}

// errBroken means that the connection ended before the result, because the peer has ended.
var errBroken = errors.New("the connection broke")

// showEvents shows the events of one connection. When ctx ends, showEvents tells the peer to cancel the job
// before it returns.
func (l *listener) showEvents(ctx context.Context, begin func(context.Context) (*http.Response, error)) (job.Result, error) {
	wire, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	stop := context.AfterFunc(ctx, hangUp)
	resp, err := begin(wire)
	if errors.Is(err, context.Canceled) { // the peer may have started the job
		l.client.cancel(ctx, l.id)
	}
	if err != nil {
		return job.Result{}, err
	}
	defer resp.Body.Close()
	if at := resp.Header.Get("Location"); at != "" {
		l.id = path.Base(at)
	}
	if !stop() {
		l.client.cancel(ctx, l.id)
		return job.Result{}, ctx.Err()
	}
	stop = context.AfterFunc(ctx, func() {
		l.client.cancel(ctx, l.id)
		hangUp()
	})
	r, err := l.read(wire, resp)
	if !stop() {
		<-wire.Done()
	}
	switch {
	case ctx.Err() != nil && (err != nil || r.Status == job.StatusCancelled):
		return job.Result{}, ctx.Err()
	case err != nil && !errors.Is(err, errBroken):
		l.client.cancel(ctx, l.id)
	}
	return r, err
}

// read shows events until the result, which it returns.
func (l *listener) read(ctx context.Context, resp *http.Response) (job.Result, error) {
	acks := l.client.acknowledging(ctx, l.id)
	defer acks.close()
	in := bufio.NewReaderSize(resp.Body, readAhead)
	for {
		m, err := readLine(in)
		if err != nil {
			return job.Result{}, err
		}
		if m.Kind == submit.ResultEvent && m.Result != nil {
			l.client.acknowledge(ctx, l.id, m.Number)
			return *m.Result, nil
		}
		if err := l.show(m.Event); err != nil {
			return job.Result{}, err
		}
		acks.upTo(m.Number)
	}
}

// show emits an event. It skips output that was already shown over an earlier connection.
func (l *listener) show(e submit.Event) error {
	l.kept = l.kept || e.Kind == submit.KeptEvent
	if e.Record > 0 {
		from := job.Source{Rank: e.Rank, Stream: e.Stream}
		fresh, ok := e.After(l.shown[from])
		if !ok {
			return nil
		}
		e, l.shown[from] = fresh, e.Record
	}
	return l.emit(e)
}

func (l *listener) warn(text string) error {
	return l.emit(submit.Event{Kind: submit.WarningEvent, Time: time.Now(), Job: l.id, Text: text})
}

// awaitPeriod is the interval between attempts to connect to the next peer.
const awaitPeriod = 200 * time.Millisecond

// await attaches to the job through the next peer on the home.
func (l *listener) await(wire context.Context) (*http.Response, error) {
	tick := time.NewTicker(awaitPeriod)
	defer tick.Stop()
	timeout := time.After(l.away)
	for {
		resp, err := l.client.attach(wire, l.id, false)
		if _, refused := errors.AsType[*RefusedError](err); err == nil || refused {
			return resp, err
		}
		select {
		case <-tick.C:
		case <-timeout:
			return nil, &LeftError{l.id, fmt.Errorf("no p2pboot was started on home %s for %v", l.client.home, l.away)}
		case <-wire.Done():
			return nil, &LeftError{l.id, fmt.Errorf("no p2pboot runs on home %s; the job continues without it", l.client.home)}
		}
	}
}

// acks sends acknowledgements to a peer in its own goroutine. Only one request is in flight; each covers
// all lines shown so far.
type acks struct {
	number  atomic.Uint64
	wake    chan struct{}
	stop    context.CancelFunc
	running sync.WaitGroup
}

func (c *Client) acknowledging(ctx context.Context, id string) *acks {
	ctx, stop := context.WithCancel(ctx)
	a := &acks{wake: make(chan struct{}, 1), stop: stop}
	a.running.Go(func() { // ends with close
		for {
			select {
			case <-a.wake:
				c.acknowledge(ctx, id, a.number.Load())
			case <-ctx.Done():
				return
			}
		}
	})
	return a
}

// upTo acknowledges all lines up to number. It never blocks.
func (a *acks) upTo(number uint64) {
	a.number.Store(number)
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *acks) close() {
	a.stop()
	a.running.Wait()
}
