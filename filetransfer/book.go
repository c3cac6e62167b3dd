package filetransfer

import (
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

// ask books the unit of r for the peer and returns nil. If the unit is taken, ask returns all taken units
// instead. It never refuses a request that is not marked fresh.
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
