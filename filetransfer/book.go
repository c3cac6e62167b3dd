package filetransfer

import (
	"slices"
	"sync"
	"time"
)

// maxBooks bounds the lists of which one serving keeps a book.
const maxBooks = 16

// A book runs a ledger for those who ask for a list.
type book struct {
	mu     sync.Mutex
	ledger *ledger
	begun  time.Time
}

// ask returns nil if the peer may have what r asks for, and books it; if not, the
// units that are taken. What is asked for in need is never refused.
func (b *book) ask(r request, by holder, units int) (taken bitset) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Since(b.begun)
	if !r.fresh {
		b.ledger.book(r.unit, by, now)
		return nil
	}
	if b.ledger.grant(r.unit, by, now) {
		return nil
	}
	return b.ledger.taken(units, now)
}

// note has the ledger take note of something, now.
func (b *book) note(what func(l *ledger, now time.Duration)) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	what(b.ledger, time.Since(b.begun))
}

// admit finds what the remote of sd may ask for.
func (s *Service) admit(sd *sender) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sw := s.swarms[sd.job]; sw != nil && slices.Contains(sw.fellows, sd.remote) {
		sd.swarm, ok = sw, true
	}
	for _, sv := range s.servings[sd.job] {
		if _, allowed := sv.allowed[sd.remote]; !allowed {
			continue
		}
		ok = true
		if sv.books[sd.list] == nil && len(sv.books) < maxBooks {
			sv.books[sd.list] = &book{ledger: newLedger(), begun: time.Now()}
		}
		sd.book = sv.books[sd.list]
	}
	s.lastLink++
	sd.holder = holder{peer: sd.remote, link: s.lastLink}
	return ok
}
