package discovery

import (
	"slices"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

func bookOrder(b *book, now time.Time) []p2ppeer.ID {
	var ids []p2ppeer.ID
	for _, k := range b.list(now) {
		ids = append(ids, k.AddrInfo.ID)
	}
	return ids
}

func TestBookListsTheNearestFirstAndHintsLast(t *testing.T) {
	b := newBook()
	b.hint(p2ppeer.AddrInfo{ID: id(0)}, testNow)
	b.answered(offerFrom(1, 1, 20), testNow)
	b.answered(offerFrom(2, 1, 10), testNow)
	if got, want := bookOrder(b, testNow), []p2ppeer.ID{id(2), id(1), id(0)}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBookForgets(t *testing.T) {
	b := newBook()
	b.answered(offerFrom(1, 1, 1), testNow)
	b.answered(offerFrom(2, 1, 2), testNow)
	for range maxMisses - 1 {
		b.missed(id(1))
		b.missed(id(2))
	}
	b.answered(offerFrom(2, 1, 2), testNow.Add(time.Minute)) // an answer resets the count
	b.missed(id(1))
	b.missed(id(2))
	if got, want := bookOrder(b, testNow), []p2ppeer.ID{id(2)}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v without the peer that was missed too often", got, want)
	}
	if got := bookOrder(b, testNow.Add(2*forgetAfter)); len(got) != 0 {
		t.Errorf("got %v, want no outdated entries", got)
	}
}

func TestBookIsBounded(t *testing.T) {
	b := newBook()
	for i := range 2 * maxKnown {
		b.hint(p2ppeer.AddrInfo{ID: id(i)}, testNow)
	}
	if got := len(b.list(testNow)); got != maxKnown {
		t.Errorf("got %d, want %d", got, maxKnown)
	}
	b.hint(p2ppeer.AddrInfo{ID: id(-1)}, testNow.Add(2*forgetAfter))
	if got := len(b.list(testNow.Add(2 * forgetAfter))); got != 1 {
		t.Errorf("got %d, want the old ones to make room", got)
	}
}
