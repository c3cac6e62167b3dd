package filetransfer

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// A serving is the content offered by one call of Serve.
type serving struct {
	allowed map[p2ppeer.ID]struct{}
	files   map[Digest]served
	books   map[Digest]*book // keyed by list
}

// A served is an offered file with its state when Serve was called.
type served struct {
	from    Source
	size    int64
	modTime time.Time
}

func (f served) is(info os.FileInfo) bool {
	return info.Size() == f.size && info.ModTime().Equal(f.modTime)
}

// Serve answers the allowed peers' requests for these contents of the job, and for no others, until stop
// is called. A peer that fetches from itself must be in allowed as well. Requests fail for a file that
// has changed since or cannot be read. Several servings of a job add up.
func (s *Service) Serve(job string, allowed []p2ppeer.ID, files map[Digest]Source) (stop func()) {
	sv := &serving{
		allowed: make(map[p2ppeer.ID]struct{}, len(allowed)),
		files:   make(map[Digest]served, len(files)),
		books:   map[Digest]*book{},
	}
	for _, id := range allowed {
		sv.allowed[id] = struct{}{}
	}
	for d, from := range files {
		f := served{from: from}
		if file, info, err := from.open(); err == nil { // on failure, opening fails again when it is requested
			file.Close()
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
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(s.servings[job], func(o *serving) bool { return o == sv })
	if len(left) == 0 {
		delete(s.servings, job)
		return
	}
	s.servings[job] = left
}

// lookup returns the file of a content, if it is offered to the peer.
func (s *Service) lookup(remote p2ppeer.ID, job string, d Digest) (f served, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sv := range s.servings[job] {
		if _, ok := sv.allowed[remote]; !ok {
			continue
		}
		if f, ok := sv.files[d]; ok {
			return f, true
		}
	}
	return served{}, false
}

// serveLink answers one peer's requests until the peer closes the link, is silent for too long, or breaks
// the protocol.
func (s *Service) serveLink(l link, remote p2ppeer.ID) {
	if s.enterLink(l) != nil {
		_ = l.Reset() // closing anyway
		return
	}
	defer s.leaveLink(l)
	const what = "serving files ended early"
	switch err := newSender(s, l, remote).run(); {
	case errors.As(err, new(wrongError)):
		s.conduct.Note(remote, what, err)
	case err != nil:
		s.conduct.Ended(remote, what, err)
	}
}
