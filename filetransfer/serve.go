package filetransfer

import (
	"bufio"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/filetransfer/internal/pb"
)

// A serving is what one call of Serve has put on offer.
type serving struct {
	allowed map[p2ppeer.ID]struct{}
	files   map[Digest]served
	done    chan struct{} // closed by stop
}

// A served file, as it was when Serve was called.
type served struct {
	path    string
	size    int64
	modTime time.Time
}

// Serve answers the allowed peers' requests for these contents of the job, and
// no others, until stop is called; a peer that fetches from itself has to be
// allowed too. The paths are local. A file that changes from now on is refused,
// and so is one that cannot be read. Several servings of a job add up.
func (s *Service) Serve(job string, allowed []p2ppeer.ID, files map[Digest]string) (stop func()) {
	sv := &serving{
		allowed: make(map[p2ppeer.ID]struct{}, len(allowed)),
		files:   make(map[Digest]served, len(files)),
		done:    make(chan struct{}),
	}
	for _, id := range allowed {
		sv.allowed[id] = struct{}{}
	}
	for d, path := range files {
		f := served{path: path}
		if info, err := os.Stat(path); err == nil { // if not, opening it fails later
			f.size, f.modTime = info.Size(), info.ModTime()
		}
		sv.files[d] = f
	}
	s.mu.Lock()
	s.servings[job] = append(s.servings[job], sv)
	s.mu.Unlock()
	return sync.OnceFunc(func() { s.stopServing(job, sv) })
}

func (s *Service) stopServing(job string, sv *serving) {
	close(sv.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(s.servings[job], func(o *serving) bool { return o == sv })
	if len(left) == 0 {
		delete(s.servings, job)
		return
	}
	s.servings[job] = left
}

// lookup finds the file that answers r, if it is on offer to the peer.
func (s *Service) lookup(remote p2ppeer.ID, r request) (f served, done <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sv := range s.servings[r.job] {
		if _, ok := sv.allowed[remote]; !ok {
			continue
		}
		if f, ok := sv.files[r.digest]; ok {
			return f, sv.done, true
		}
	}
	return served{}, nil, false
}

// serveLink answers one peer's requests until it closes the link, falls silent,
// or breaks the protocol.
func (s *Service) serveLink(l link, remote p2ppeer.ID) {
	if s.enterLink(l) != nil {
		_ = l.Reset() // closing anyway
		return
	}
	defer s.leaveLink(l)
	sd := &sender{svc: s, remote: remote, link: l, w: bufio.NewWriterSize(l, 64<<10)}
	sd.msgs = pbio.NewDelimitedWriter(sd.w)
	if err := sd.run(); err != nil {
		s.log.Debug().Err(err).Stringer("peer", remote).Msg("serving files ended early")
	}
}

// A sender answers the requests of one link.
type sender struct {
	svc    *Service
	remote p2ppeer.ID
	link   link
	w      *bufio.Writer
	msgs   pbio.Writer
	buf    []byte // of maxChunk once something is sent: strangers cost little
}

func (sd *sender) run() error {
	queue := make(chan request, window)
	broken := make(chan error, 1)
	// Ends when the link does: by the asking peer, or by the Reset below.
	go func() {
		defer close(queue)
		broken <- sd.readRequests(queue)
	}()
	err := sd.answer(queue)
	if err != nil {
		_ = sd.link.Reset() // err is the one to report
		<-broken
		return err
	}
	if err := <-broken; err != nil {
		_ = sd.link.Reset()
		return err
	}
	return sd.link.Close()
}

// readRequests reads ahead, so that the asking peer never waits for room while
// this one waits for it to read. A peer that asks beyond the window is cut.
func (sd *sender) readRequests(queue chan<- request) error {
	r := pbio.NewDelimitedReader(sd.link, maxRequest)
	for {
		var msg pb.Request
		if err := r.ReadMsg(&msg); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		rs, err := decodeRequest(&msg)
		if err != nil {
			return err
		}
		for _, q := range rs {
			select {
			case queue <- q:
			default:
				return errors.New("more requests ahead than the protocol allows")
			}
		}
	}
}

// answer sends contents in the order of the queue, until the asking peer has
// closed its end.
func (sd *sender) answer(queue <-chan request) error {
	idle := time.NewTimer(sd.svc.stall)
	defer idle.Stop()
	for {
		if len(queue) == 0 {
			if err := sd.flush(); err != nil {
				return err
			}
		}
		idle.Reset(sd.svc.stall)
		select {
		case q, ok := <-queue:
			if !ok {
				return nil
			}
			if err := sd.send(q); err != nil {
				return err
			}
		case <-idle.C:
			return errors.New("nothing was asked for, for too long")
		}
	}
}

// send answers one request. Its error means that the link is broken; that the
// file is not to be had is an answer.
func (sd *sender) send(q request) error {
	f, done, ok := sd.svc.lookup(sd.remote, q)
	if !ok {
		return sd.refuse(q, pb.Refusal_REFUSAL_UNKNOWN, nil)
	}
	if sd.buf == nil {
		sd.buf = make([]byte, maxChunk)
	}
	file, info, err := openRegular(f.path)
	if err != nil {
		return sd.refuse(q, pb.Refusal_REFUSAL_UNREADABLE, err)
	}
	defer file.Close()
	if info.Size() != f.size || !info.ModTime().Equal(f.modTime) || q.offset > f.size {
		return sd.refuse(q, pb.Refusal_REFUSAL_CHANGED, nil)
	}
	if _, err := file.Seek(q.offset, io.SeekStart); err != nil {
		return sd.refuse(q, pb.Refusal_REFUSAL_UNREADABLE, err)
	}
	for left := f.size - q.offset; ; {
		b := sd.buf[:min(left, maxChunk)]
		if refusal, err := readServed(file, f, b, done); refusal != pb.Refusal_REFUSAL_NONE {
			return sd.refuse(q, refusal, err)
		}
		left -= int64(len(b))
		if err := sd.chunk(b, left == 0); err != nil || left == 0 {
			return err
		}
	}
}

// readServed fills b from the file, and looks once more whether the file is
// what it was: what has been read is of the old content then.
func readServed(file *os.File, f served, b []byte, done <-chan struct{}) (pb.Refusal, error) {
	select {
	case <-done:
		return pb.Refusal_REFUSAL_UNKNOWN, nil
	default:
	}
	if _, err := io.ReadFull(file, b); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return pb.Refusal_REFUSAL_CHANGED, err
		}
		return pb.Refusal_REFUSAL_UNREADABLE, err
	}
	info, err := file.Stat()
	if err != nil {
		return pb.Refusal_REFUSAL_UNREADABLE, err
	}
	if info.Size() != f.size || !info.ModTime().Equal(f.modTime) {
		return pb.Refusal_REFUSAL_CHANGED, nil
	}
	return pb.Refusal_REFUSAL_NONE, nil
}

func (sd *sender) chunk(b []byte, last bool) error {
	if err := sd.link.SetWriteDeadline(time.Now().Add(sd.svc.stall)); err != nil {
		return err
	}
	if err := sd.msgs.WriteMsg(&pb.Chunk{Length: uint32(len(b)), Last: last}); err != nil {
		return err
	}
	if _, err := sd.w.Write(b); err != nil {
		return err
	}
	sd.svc.bytesSent.Add(int64(len(b)))
	if last {
		sd.svc.filesSent.Add(1)
	}
	return nil
}

// refuse answers that the content is not to be had. The owner of a file that
// went bad should see it; that somebody asked in vain is nothing to report.
func (sd *sender) refuse(q request, why pb.Refusal, cause error) error {
	level := zerolog.WarnLevel
	if why == pb.Refusal_REFUSAL_UNKNOWN {
		level = zerolog.DebugLevel
	}
	sd.svc.log.WithLevel(level).Err(cause).Stringer("peer", sd.remote).Str("job", q.job).
		Stringer("digest", q.digest).Stringer("refusal", why).Msg("content refused")
	return sd.msgs.WriteMsg(&pb.Chunk{Refusal: why})
}

func (sd *sender) flush() error {
	if err := sd.link.SetWriteDeadline(time.Now().Add(sd.svc.stall)); err != nil {
		return err
	}
	return sd.w.Flush()
}
