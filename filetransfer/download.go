package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A Download is content from the web that is to appear under Path on another machine.
type Download struct {
	Path   string `json:"path"`             // staged path, as in Entry
	URL    string `json:"url"`              // http or https
	Digest string `json:"digest,omitempty"` // as formatted by Digest.String; empty means any content
}

// Validate returns an error if d is invalid.
func (d Download) Validate() error {
	if err := validPath(d.Path); err != nil {
		return err
	}
	u, err := url.Parse(d.URL)
	if err != nil {
		return fmt.Errorf("URL of %q: %w", d.Path, errors.Unwrap(err)) // err's text has the URL
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%s: want an http or https URL", u.Redacted())
	}
	if d.Digest != "" {
		_, err = ParseDigest(d.Digest)
	}
	return err
}

// String returns the URL without a password.
func (d Download) String() string {
	u, err := url.Parse(d.URL)
	if err != nil {
		return d.Path
	}
	return u.Redacted()
}

// Download brings d into the store, pins it for the job until Unpin, and returns its digest. It does not
// download content that the store already has; for a URL without a digest, it asks the server whether the
// content has changed. After an interruption, the received bytes remain, and the download resumes there
// if the server supports that (T2). progress, if not nil, is called with the number of received bytes and
// with the total, or 0 if the total is unknown.
//
// The error names the URL and the cause, for instance the server's status or wrong bytes for the digest
// (T1), or content that does not fit into the store.
func (s *Store) Download(ctx context.Context, client *http.Client, job string, d Download, progress func(here, total int64)) (Digest, error) {
	if err := d.Validate(); err != nil {
		return Digest{}, fmt.Errorf("download: %w", err)
	}
	l := &download{Download: d, store: s, client: client, job: job, progress: progress, stall: stallTimeout, backoff: firstBackoff}
	if l.progress == nil {
		l.progress = func(int64, int64) {}
	}
	if d.Digest != "" {
		l.want, _ = ParseDigest(d.Digest) // Validate has checked it
	}
	digest, err := l.run(ctx)
	if err != nil {
		return Digest{}, fmt.Errorf("download %s: %w", d, err)
	}
	return digest, nil
}

// A download is a Download in progress.
type download struct {
	Download
	store          *Store
	client         *http.Client
	job            string
	want           Digest // the zero Digest means any content
	progress       func(here, total int64)
	stall, backoff time.Duration
	spool          *spool
	page           page
	kept           *Digest // content of the URL at the last download, if the store has it
}

func (l *download) run(ctx context.Context) (Digest, error) {
	var err error
	if l.spool, err = openSpool(ctx, l.store, l.key()); err != nil {
		return Digest{}, err
	}
	defer l.spool.close()
	if d := l.want; d != (Digest{}) {
		if l.cached(ctx, d) {
			return d, nil
		}
	}
	l.recall(ctx)
	for failures := 0; ; {
		before := l.spool.offset
		d, err := l.attempt(ctx)
		switch {
		case err == nil:
			return d, nil
		case ctx.Err() != nil:
			return d, ctx.Err()
		case !errors.As(err, new(brokenError)):
			return d, err
		case l.spool.offset > before:
			failures = 0
		}
		if failures++; failures == maxFailures {
			return d, fmt.Errorf("gave up after %d attempts: %w", failures, err)
		}
		if err := pause(ctx, l.backoff<<(failures-1)); err != nil {
			return d, err
		}
	}
}

// key returns the name of the download's spool and page, derived from the URL and the digest.
func (l *download) key() Digest { return DigestOf([]byte("web " + l.URL + " " + l.Digest)) }

// cached pins the content and reports whether it is in the store and intact.
func (l *download) cached(ctx context.Context, d Digest) bool {
	l.store.Pin(l.job, []Digest{d})
	f, err := l.store.Open(d)
	if err != nil {
		return false
	}
	defer f.Close()
	found, _, err := digestReader(ctx, f)
	if err == nil && found != d {
		_ = l.store.drop(d) // on failure, the content is replaced later
	}
	return err == nil && found == d
}

// recall loads the record of earlier downloads of the URL.
func (l *download) recall(ctx context.Context) {
	l.page = l.store.pages.read(l.key())
	d, err := ParseDigest(l.page.Digest)
	if err != nil || l.want != (Digest{}) {
		return
	}
	if l.cached(ctx, d) {
		l.kept = &d
	}
}

var errStalled = errors.New("timed out waiting for the server")

// attempt requests the missing bytes and receives them.
func (l *download) attempt(ctx context.Context) (d Digest, err error) {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(l.stall, func() { cancel(errStalled) })
	defer silent.Stop()
	d, err = l.ask(within, silent)
	if err != nil && errors.Is(context.Cause(within), errStalled) {
		err = brokenError{errStalled}
	}
	return d, err
}

func (l *download) ask(ctx context.Context, silent *time.Timer) (d Digest, err error) {
	req, err := l.request(ctx)
	if err != nil {
		return d, err
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return d, brokenError{plainURLError(err)}
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified && l.kept != nil {
		return *l.kept, nil
	}
	resumed, err := l.answered(resp)
	if err != nil {
		return d, err
	}
	if err := l.receive(resp, silent); err != nil {
		return d, err
	}
	return l.finish(ctx, resumed)
}

// request returns a request for the missing bytes, or a conditional one if the content is in the store.
func (l *download) request(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.URL, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "identity") // the digest applies to the plain bytes
	validator := l.page.validator()
	switch {
	case l.kept != nil && l.page.ETag != "":
		req.Header.Set("If-None-Match", l.page.ETag)
	case l.kept != nil && l.page.LastModified != "":
		req.Header.Set("If-Modified-Since", l.page.LastModified)
	case l.spool.offset > 0 && validator != "":
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", l.spool.offset))
		req.Header.Set("If-Range", validator)
	case l.spool.offset > 0 && l.want != (Digest{}):
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", l.spool.offset))
	}
	return req, nil
}

// answered checks a response and reports whether it continues the bytes received so far.
func (l *download) answered(resp *http.Response) (resumed bool, err error) {
	switch code := resp.StatusCode; {
	case code == http.StatusPartialContent &&
		strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", l.spool.offset)):
		resumed = true
	case code == http.StatusOK:
		if err := l.spool.restart(); err != nil {
			return false, err
		}
		l.page = page{URL: l.String(), ETag: resp.Header.Get("ETag"), LastModified: resp.Header.Get("Last-Modified")}
		if err := l.store.pages.write(l.key(), l.page, l.store.keeps); err != nil {
			return false, err
		}
	case code == http.StatusRequestedRangeNotSatisfiable, code == http.StatusPartialContent:
		if err := l.spool.restart(); err != nil {
			return false, err
		}
		return false, brokenError{fmt.Errorf("the server answers %s", resp.Status)}
	case code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		return false, brokenError{fmt.Errorf("the server answers %s", resp.Status)}
	default:
		return false, fmt.Errorf("the server answers %s", resp.Status)
	}
	if resp.ContentLength >= 0 {
		err = l.spool.expect(l.spool.offset + resp.ContentLength)
	}
	return resumed, err
}

// receive copies the body of a response into the spool. Each read resets the stall timer silent.
func (l *download) receive(resp *http.Response, silent *time.Timer) error {
	total := int64(0)
	if resp.ContentLength >= 0 {
		total = l.spool.offset + resp.ContentLength
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := resp.Body.Read(buf)
		if _, wrong := l.spool.Write(buf[:n]); wrong != nil {
			return wrong
		}
		l.progress(l.spool.offset, total)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return brokenError{err}
		}
		silent.Reset(l.stall)
	}
}

// finish verifies the complete content and commits it to the store.
func (l *download) finish(ctx context.Context, resumed bool) (Digest, error) {
	d := Digest(l.spool.hash.Sum(nil))
	if l.want != (Digest{}) && d != l.want {
		if err := l.spool.restart(); err != nil {
			return d, err
		}
		err := fmt.Errorf("its bytes have the digest sha256:%s, not sha256:%s", d, l.want)
		if resumed { // the earlier part may be wrong
			return d, brokenError{err}
		}
		return d, err
	}
	l.page.Digest = d.String()
	if err := l.store.pages.write(l.key(), l.page, l.store.keeps); err != nil { // before commit, since others rely on the page then
		return d, err
	}
	return l.spool.commit(ctx, l.job)
}

// NewWebClient returns the client for downloads to the user's own machine. The client accesses any URL,
// through the proxies of the environment.
func NewWebClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = stallTimeout
	return &http.Client{Transport: t}
}

// plainURLError strips the URL, which may contain a password.
func plainURLError(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
