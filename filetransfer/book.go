package filetransfer

import (
	"slices"
	"sync"
	"time"
)

// maxBooks bounds the lists for which one serving keeps a book.
const maxBooks = 16

// A book makes the ledger of one list safe for concurrent use.
type book struct {
	mu     sync.Mutex
	ledger *ledger
	begun  time.Time
}

// ask books the unit of r for the peer and returns nil, or returns the units that are taken. It never
// refuses a request that is not marked fresh.
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

// note updates the ledger at the current time.
func (b *book) note(what func(l *ledger, now time.Duration)) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	what(b.ledger, time.Since(b.begun))
}

// admit determines which units the remote of sd may request. ok is false if nothing is served to it.
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
