package membership

import (
	"fmt"
	"slices"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

func TestAdmissionsExpire(t *testing.T) {
	const a, b = p2ppeer.ID("a"), p2ppeer.ID("b")
	var r register
	r.admit(a, Token{Expires: epoch.Add(time.Hour)}, epoch)
	r.admit(b, Token{Name: "bob", Expires: epoch.Add(time.Minute)}, epoch)
	here := func(p2ppeer.ID) bool { return true }
	if !r.member(a, epoch) || !r.member(b, epoch) {
		t.Fatal("a peer with a valid token is not a member")
	}
	if got := r.person(b, epoch); got != "bob" {
		t.Errorf("got person %q, want bob", got)
	}
	if r.member(b, epoch.Add(time.Minute)) || r.person(b, epoch.Add(time.Minute)) != "" {
		t.Error("a peer is still a member after its token has expired")
	}
	if got := r.review(here, epoch.Add(time.Minute)); !slices.Equal(got, []p2ppeer.ID{b}) {
		t.Errorf("got %v as expired, want b", got)
	}
	if got := r.review(here, epoch.Add(time.Minute)); len(got) > 0 {
		t.Errorf("%v was reported as expired twice", got)
	}
	gone := func(p2ppeer.ID) bool { return false }
	r.review(gone, epoch.Add(time.Minute+unconnectedFor-1))
	if !r.member(a, epoch.Add(2*time.Minute)) {
		t.Error("a disconnected peer was removed too early")
	}
	if got := r.review(gone, epoch.Add(time.Minute+unconnectedFor)); len(got) > 0 || len(r.admitted) > 0 {
		t.Errorf("got %v as expired and %v as admitted, want no peers", got, r.admitted)
	}
}

func TestRefusalsExpire(t *testing.T) {
	const a = p2ppeer.ID("a")
	var r register
	r.admit(a, Token{Expires: epoch.Add(time.Hour)}, epoch)
	r.refuse(a, epoch)
	if r.member(a, epoch) || !r.recentlyRefused(a, epoch) {
		t.Error("a refused peer is still a member")
	}
	if !r.recentlyRefused(a, epoch.Add(refusedFor-1)) || r.recentlyRefused(a, epoch.Add(refusedFor)) {
		t.Errorf("the refusal does not last for %v", refusedFor)
	}
	r.admit(a, Token{Expires: epoch.Add(time.Hour)}, epoch)
	if r.recentlyRefused(a, epoch) {
		t.Error("an admitted peer counts as refused")
	}
}

func TestRefusedPeersAreBounded(t *testing.T) {
	var r register
	for i := range 4 * maxRefused {
		r.refuse(p2ppeer.ID(fmt.Sprint(i)), epoch.Add(time.Duration(i)*time.Microsecond))
	}
	if len(r.refused) > maxRefused {
		t.Errorf("%d refusals are recorded, want at most %d", len(r.refused), maxRefused)
	}
	if last := p2ppeer.ID(fmt.Sprint(4*maxRefused - 1)); !r.recentlyRefused(last, epoch.Add(time.Second)) {
		t.Error("the last refused peer was forgotten")
	}
}
