package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
)

// Fetch brings into the store what it lacks of the wanted contents, which peer
// from serves for the job, and pins all of them for the job until Store.Unpin
// (also when it fails). What is there already, or on its way for another
// Fetch, is not asked for; what is there in part is resumed (promise T2).
// progress, if not nil, is called from this goroutine with each number of new
// bytes.
//
// A broken or stalled stream is replaced, a bounded number of times in a row.
// The error names the peer and the content: refused, changed at its source,
// longer than wanted, or not what its digest says (T1). It wraps ErrFull when
// the store cannot take the contents.
func (s *Service) Fetch(ctx context.Context, from p2ppeer.ID, job string, want []Want, progress func(bytes int64)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.wg.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	if err := s.fetch(ctx, from, job, want, progress); err != nil {
		return fmt.Errorf("fetch from %s: %w", from, err)
	}
	return nil
}

// FetchManifest fetches the manifest that w names, and reads it.
func (s *Service) FetchManifest(ctx context.Context, from p2ppeer.ID, job string, w Want) (Manifest, error) {
	if w.Size > MaxManifestBytes {
		return nil, fmt.Errorf("manifest %s: %d bytes, at most %d are taken", w.Digest, w.Size, MaxManifestBytes)
	}
	if err := s.Fetch(ctx, from, job, []Want{w}, nil); err != nil {
		return nil, err
	}
	return s.store.Manifest(ctx, w.Digest)
}

func (s *Service) fetch(ctx context.Context, from p2ppeer.ID, job string, want []Want, progress func(int64)) error {
	if len(job) > maxJob {
		return fmt.Errorf("name of the job has %d bytes, at most %d are taken", len(job), maxJob)
	}
	digests := make([]Digest, len(want))
	for i, w := range want {
		if w.Size < 0 || w.Size > MaxFileBytes {
			return fmt.Errorf("%s: size %d is out of range", w, w.Size)
		}
		digests[i] = w.Digest
	}
	s.store.Pin(job, digests)
	return s.store.obtain(ctx, want, func(c *claim) error {
		t := &transfer{svc: s, from: from, job: job, claim: c, plan: newPlan(c.wants, c.offsets), progress: progress}
		return t.run(ctx)
	})
}

// A transfer fills one claim from one peer.
type transfer struct {
	svc      *Service
	from     p2ppeer.ID
	job      string
	claim    *claim
	plan     *plan
	progress func(int64)
	current  *partial // the front of the plan, if some of it has arrived
}

// A brokenError is the end of a stream that another stream may mend.
type brokenError struct{ error }

func (e brokenError) Unwrap() error { return e.error }

func (t *transfer) run(ctx context.Context) error {
	defer t.closeCurrent()
	for {
		err := t.stream(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.As(err, new(brokenError)):
			return err
		case !t.plan.broken():
			return fmt.Errorf("gave up after %d attempts: %w", t.plan.failures, err)
		}
		t.svc.log.Debug().Err(err).Stringer("peer", t.from).Str("job", t.job).Msg("transfer interrupted, resuming")
		if err := pause(ctx, t.svc.backoff<<(t.plan.failures-1)); err != nil {
			return err
		}
	}
}

// pause waits for d, or for the end of ctx, which is its error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stream carries out the plan over one stream, as far as that leads.
func (t *transfer) stream(ctx context.Context) (err error) {
	l, err := t.svc.open(ctx, t.from)
	if err != nil {
		return brokenError{err}
	}
	defer func() {
		if err != nil {
			_ = l.Reset() // err is the one to report
		}
	}()
	defer context.AfterFunc(ctx, func() { _ = l.Reset() })()
	requests := pbio.NewDelimitedWriter(l)
	chunks := newChunkReader(l)
	for !t.plan.done() {
		if err := t.ask(l, requests); err != nil {
			return brokenError{err}
		}
		if err := t.receive(ctx, l, chunks); err != nil {
			return err
		}
	}
	_ = l.Close() // everything is here; how the stream ends does not matter any more
	return nil
}

func (t *transfer) ask(l link, requests pbio.Writer) error {
	for needs := t.plan.ask(); len(needs) > 0; needs = t.plan.ask() {
		if err := l.SetWriteDeadline(time.Now().Add(t.svc.stall)); err != nil {
			return err
		}
		if err := requests.WriteMsg(encodeRequest(t.job, needs)); err != nil {
			return err
		}
	}
	return nil
}

// receive takes one chunk.
func (t *transfer) receive(ctx context.Context, l link, chunks *chunkReader) error {
	n, _ := t.plan.front()
	if err := l.SetReadDeadline(time.Now().Add(t.svc.stall)); err != nil {
		return brokenError{err}
	}
	b, last, err := chunks.next()
	if errors.As(err, new(refusedError)) {
		return fmt.Errorf("%s: %w", n.Want, err)
	}
	if err != nil {
		return brokenError{fmt.Errorf("%s at byte %d: %w", n.Want, n.offset, err)}
	}
	complete, err := t.plan.arrived(int64(len(b)), last)
	if err != nil {
		return fmt.Errorf("the peer breaks the protocol: it sends %w", err)
	}
	if err := t.write(ctx, n, b); err != nil {
		return err
	}
	t.svc.bytesReceived.Add(int64(len(b)))
	if t.progress != nil && len(b) > 0 {
		t.progress(int64(len(b)))
	}
	if complete {
		return t.commit(n)
	}
	return nil
}

func (t *transfer) write(ctx context.Context, n need, b []byte) (err error) {
	if t.current == nil {
		if t.current, err = t.claim.open(ctx, n.Want, n.offset); err != nil {
			return err
		}
	}
	_, err = t.current.Write(b)
	return err
}

// commit verifies the content that has arrived in full.
func (t *transfer) commit(n need) error {
	p := t.current
	t.current = nil
	ok, err := p.commit()
	if err != nil {
		return err
	}
	if ok {
		t.svc.filesReceived.Add(1)
		return nil
	}
	if t.plan.rejected(n) {
		return nil
	}
	return fmt.Errorf("%s: the bytes that came are not the ones that were submitted (SHA-256 differs)", n.Want)
}

// closeCurrent leaves what has arrived of the front content to the next Fetch.
func (t *transfer) closeCurrent() {
	if t.current != nil {
		t.current.close()
	}
}
