package filetransfer

import (
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

// servings holds the servings of each job.
type servings struct {
	mu    sync.Mutex
	ofJob map[string][]*serving
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
func (ss *servings) Serve(job string, allowed []p2ppeer.ID, files map[Digest]Source) (stop func()) {
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
		if file, info, err := from.open(); err == nil { // on failure, a request for the file also fails
			file.Close()
			f.size, f.modTime = info.Size(), info.ModTime()
		}
		sv.files[d] = f
	}
	ss.mu.Lock()
	ss.ofJob[job] = append(ss.ofJob[job], sv)
	ss.mu.Unlock()
	return sync.OnceFunc(func() { ss.stop(job, sv) })
}

func (ss *servings) stop(job string, sv *serving) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	left := slices.DeleteFunc(ss.ofJob[job], func(o *serving) bool { return o == sv })
	if len(left) == 0 {
		delete(ss.ofJob, job)
		return
	}
	ss.ofJob[job] = left
}

// lookup returns the file of a content, if it is offered to the peer.
func (ss *servings) lookup(remote p2ppeer.ID, job string, d Digest) (f served, ok bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, sv := range ss.ofJob[job] {
		if _, ok := sv.allowed[remote]; !ok {
			continue
		}
		if f, ok := sv.files[d]; ok {
			return f, true
		}
	}
	return served{}, false
}

// admit reports whether contents of the job are offered to the peer, and returns the book of its list.
func (ss *servings) admit(remote p2ppeer.ID, job string, list Digest) (b *book, ok bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, sv := range ss.ofJob[job] {
		if _, allowed := sv.allowed[remote]; !allowed {
			continue
		}
		ok = true
		if sv.books[list] == nil && len(sv.books) < maxBooks {
			sv.books[list] = &book{ledger: newLedger(), begun: time.Now()}
		}
		b = sv.books[list]
	}
	return b, ok
}
