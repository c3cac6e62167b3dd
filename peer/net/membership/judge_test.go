package membership

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/sealed"
	"github.com/p2pmpi/p2pmpi/peer/net/membership/internal/pb"
)

func prove(t *testing.T, i *Invitation, id p2ppeer.ID, home crypto.PrivKey) *pb.Proof {
	t.Helper()
	p, err := i.proof(id, home)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWhoIsAdmitted(t *testing.T) {
	owner, ownerID := newKey(t)
	other, _ := newKey(t)
	aKey, a := newKey(t)
	_, b := newKey(t)
	lab := Network{"lab", ownerID}
	later := epoch.Add(time.Hour)
	bound := invite(t, owner, "lab", a, later)
	anyone := invite(t, owner, "lab", "", later)
	forged := prove(t, bound, a, nil)
	forged = &pb.Proof{Token: append([]byte(nil), forged.GetToken()...)}
	forged.Token[len(forged.Token)-1] ^= 1
	voucher := prove(t, bound, b, aKey)
	tests := map[string]struct {
		proof *pb.Proof
		from  p2ppeer.ID
		at    time.Time
		want  pb.Verdict
	}{
		"the holder":                            {prove(t, bound, a, nil), a, epoch, pb.Verdict_ADMITTED},
		"just before the end":                   {prove(t, bound, a, nil), a, later.Add(-time.Millisecond), pb.Verdict_ADMITTED},
		"at the end":                            {prove(t, bound, a, nil), a, later, pb.Verdict_EXPIRED},
		"any peer that has the invitation":      {prove(t, anyone, b, nil), b, epoch, pb.Verdict_ADMITTED},
		"a peer with a copied proof":            {prove(t, anyone, b, nil), a, epoch, pb.Verdict_OTHER_PEER},
		"a peer with the holder's copied proof": {prove(t, bound, a, nil), b, epoch, pb.Verdict_OTHER_PEER},
		"a peer with a voucher":                 {voucher, b, epoch, pb.Verdict_ADMITTED},
		"a peer with another peer's voucher":    {voucher, ownerID, epoch, pb.Verdict_OTHER_PEER},
		"a voucher of another holder":           {&pb.Proof{Token: prove(t, anyone, b, nil).GetToken(), Voucher: voucher.GetVoucher()}, b, epoch, pb.Verdict_OTHER_PEER},
		"a token in place of a voucher":         {&pb.Proof{Token: voucher.GetToken(), Voucher: voucher.GetToken()}, b, epoch, pb.Verdict_OTHER_PEER},
		"a voucher in place of a token":         {&pb.Proof{Token: voucher.GetVoucher()}, b, epoch, pb.Verdict_MALFORMED},
		"no proof":                              {nil, a, epoch, pb.Verdict_NO_TOKEN},
		"a network of the same name":            {prove(t, invite(t, other, "lab", a, later), a, nil), a, epoch, pb.Verdict_OTHER_NETWORK},
		"another network of the owner":          {prove(t, invite(t, owner, "office", a, later), a, nil), a, epoch, pb.Verdict_OTHER_NETWORK},
		"a changed token":                       {forged, a, epoch, pb.Verdict_MALFORMED},
		"a token that is too long":              {&pb.Proof{Token: make([]byte, maxSealed+1)}, a, epoch, pb.Verdict_MALFORMED},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, token := judge(test.proof, test.from, lab, test.at)
			if got != test.want {
				t.Fatalf("got %v, want %v", got, test.want)
			}
			if got == pb.Verdict_ADMITTED && !token.Expires.Equal(later) {
				t.Errorf("the peer is admitted until %v, want %v", token.Expires, later)
			}
			if got != pb.Verdict_ADMITTED && token != (Token{}) {
				t.Errorf("the peer was not admitted, but the token of %q was returned", token.person())
			}
		})
	}
}

// TestTokensWithOneNameHaveOneOwner checks that all tokens with the same name belong to one person, that each
// token without a name stands for another person, and that names are valid.
func TestTokensWithOneNameHaveOneOwner(t *testing.T) {
	owner, ownerID := newKey(t)
	_, a := newKey(t)
	_, b := newKey(t)
	lab, later := Network{"lab", ownerID}, epoch.Add(time.Hour)
	person := func(i *Invitation, from p2ppeer.ID) string {
		t.Helper()
		v, token := judge(prove(t, i, from, nil), from, lab, epoch)
		if v != pb.Verdict_ADMITTED {
			t.Fatalf("got %v, want %v", v, pb.Verdict_ADMITTED)
		}
		return token.person()
	}
	shared := invitePerson(t, owner, "lab", "alice", "", later)
	bound := invitePerson(t, owner, "lab", "alice", b, later)
	if got := []string{person(shared, a), person(shared, b), person(bound, b)}; got[0] != "alice" || got[1] != "alice" || got[2] != "alice" {
		t.Errorf("three tokens with the name alice: persons %q, want alice", got)
	}
	room := invite(t, owner, "lab", "", later)
	if x, y := person(room, a), person(room, b); x != y || x != room.Holder.String() {
		t.Errorf("one token without a name: persons %q and %q, want the holder's ID twice", x, y)
	}
	if x, y := person(invite(t, owner, "lab", a, later), a), person(invite(t, owner, "lab", b, later), b); x == y {
		t.Errorf("two tokens without a name: both stand for %q", x)
	}
	for _, name := range []string{a.String(), "al ice", "alice\n", strings.Repeat("a", 48)} {
		if _, err := Invite(owner, "lab", name, "", epoch, later); err == nil {
			t.Errorf("the name %q was accepted", name)
		}
		forged := &Token{Network: lab, Holder: a, Name: name, Issued: epoch, Expires: later}
		envelope, err := sealed.Seal(forged, owner)
		if err != nil {
			t.Fatal(err)
		}
		if v, _ := judge(&pb.Proof{Token: envelope}, a, lab, epoch); v != pb.Verdict_MALFORMED {
			t.Errorf("a token with the name %q: got %v, want %v", name, v, pb.Verdict_MALFORMED)
		}
	}
}

// oldInvitation is an invitation that is bound to a peer and was made before tokens had names.
const oldInvitation = `p2pmpi1.Cr8BCiQIARIgAv6ffzfzdiEf2gDP8oTaynTHy0dO4nCM4k9ad__hvVgSFS9wMnBtcGkvbmV0d29yay10b2tlbho-CAESA2xhYhomACQIARIgifOIskNOdKNCszsaZOQbwvhtzRrMq-7RCo2OJmlMPiUg2rW0tKA0KNqVib6EkAEqQNvUPzmnKQhOaJHmYlJ5W9fp9kx-GwRYcTmHB9tjsCJtNfAi8aPsMNC8EEzoaL5L0SbfTdL9HWqH5y82TpFZTQQ`

// TestOldTokensStayValid checks that tokens of version 1 without a name are still valid.
func TestOldTokensStayValid(t *testing.T) {
	i, err := ParseInvitation(oldInvitation)
	if err != nil {
		t.Fatal(err)
	}
	v, token := judge(prove(t, i, i.Holder, nil), i.Holder, i.Network, epoch)
	if v != pb.Verdict_ADMITTED || token.Name != "" || token.person() != i.Holder.String() {
		t.Errorf("got %v, %+v; want an admission of its holder as the person", v, token)
	}
}

func TestBoundInvitationIsRefusedForAnotherPeer(t *testing.T) {
	owner, _ := newKey(t)
	_, a := newKey(t)
	bKey, b := newKey(t)
	_, err := invite(t, owner, "lab", a, epoch).proof(b, bKey)
	if bound, ok := errors.AsType[*BoundError](err); !ok || bound.To != a || bound.Peer != b {
		t.Errorf("got %v, want an error that names both peers", err)
	}
}

func TestInvitationsRoundTrip(t *testing.T) {
	owner, ownerID := newKey(t)
	_, a := newKey(t)
	for _, holder := range []p2ppeer.ID{a, ""} {
		i := invitePerson(t, owner, "lab", strings.Repeat("a", 47), holder, epoch.Add(time.Hour))
		text, err := i.Text()
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseInvitation(" " + text + "\n")
		if err != nil {
			t.Fatal(err)
		}
		if got.Token != i.Token || got.Bound() != (holder != "") || got.Network != (Network{"lab", ownerID}) {
			t.Errorf("got %+v, want %+v", got.Token, i.Token)
		}
	}
}

func TestAlteredInvitationIsRefused(t *testing.T) {
	owner, _ := newKey(t)
	_, a := newKey(t)
	text, err := invite(t, owner, "lab", a, epoch).Text()
	if err != nil {
		t.Fatal(err)
	}
	for n := range text {
		changed := []byte(text)
		if changed[n]++; changed[n] == 'z'+1 {
			changed[n] = 'a'
		}
		got, err := ParseInvitation(string(changed))
		if err == nil {
			t.Errorf("character %d changed: accepted as %+v", n, got.Token)
		}
	}
}

func TestNetworkNames(t *testing.T) {
	for name, want := range map[string]bool{
		"lab": true, "a.b-c_d+e": true, "": false, ".": false, "..": false, "...": false, "a/b": false, "a b": false,
		"12345678901234567890123456789012345678901234567": true, "123456789012345678901234567890123456789012345678": false,
	} {
		if err := CheckName(name); (err == nil) != want {
			t.Errorf("%q: got %v, want it valid: %v", name, err, want)
		}
	}
	_, a := newKey(t)
	_, b := newKey(t)
	if (Network{"lab", a}).ID() == (Network{"lab", b}).ID() {
		t.Error("networks of two owners have one ID")
	}
}
