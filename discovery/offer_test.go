package discovery

import (
	"bytes"
	"crypto/rand"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/discovery/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/reliability"
	"github.com/p2pmpi/p2pmpi/internal/sealed"
	"github.com/p2pmpi/p2pmpi/internal/version"
)

var testNow = time.UnixMilli(1_700_000_000_000)

func newKey(t testing.TB) (crypto.PrivKey, p2ppeer.ID) {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := p2ppeer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, id
}

func testOffer(id p2ppeer.ID) Offer {
	return Offer{
		Peer: id, Network: "test", SlotsTotal: 4, SlotsFree: 3, MaxJobs: 2, Jobs: 1,
		MemoryBytes: 1 << 30, OS: "linux", Arch: "amd64", Kinds: []string{"native"},
		Speed: 1500, Load: 0.25, Reachability: network.ReachabilityPrivate, Site: "attic", Owner: "alice", Machine: "0123",
		History:  reliability.History{Up: 90 * time.Minute, Ends: 3},
		Protocol: version.Protocol, Release: version.Release,
		Issued: testNow, Expires: testNow.Add(offerLifetime),
	}
}

// sealUnchecked signs r without validation, as a hostile peer would.
func sealUnchecked(t testing.TB, r sealed.Record, key crypto.PrivKey) []byte {
	t.Helper()
	data, err := sealed.Seal(r, key)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestOfferRoundTrip(t *testing.T) {
	key, id := newKey(t)
	want := testOffer(id)
	data, err := sealOffer(want, key)
	if err != nil {
		t.Fatal(err)
	}
	got, err := openOffer(data, id, "test", testNow)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	key, id := newKey(t)
	o := testOffer(id)
	o.History = reliability.History{Up: math.MaxInt64, Ends: math.MaxUint32}
	got, err := openOffer(sealUnchecked(t, &o, key), id, "test", testNow)
	if want := (reliability.History{Up: reliability.MaxUp, Ends: reliability.MaxEnds}); err != nil || got.History != want {
		t.Errorf("got %+v, %v, want %+v", got.History, err, want)
	}
}

func TestOpenRefuses(t *testing.T) {
	key, id := newKey(t)
	_, otherID := newKey(t)
	for _, tt := range []struct {
		name   string
		change func(*Offer)
		from   p2ppeer.ID
		at     time.Duration // time after testNow
		want   Reason
		detail string
	}{
		{"an offer about another peer", func(o *Offer) { o.Peer = otherID }, id, 0, BadOffer, "another peer"},
		{"an offer signed by another peer", func(o *Offer) { o.Peer = otherID }, otherID, 0, BadOffer, "another peer"},
		{"an offer sent by another peer", func(*Offer) {}, otherID, 0, BadOffer, "another peer"},
		{"an invalid offer of another version", func(o *Offer) { o.Protocol++; o.OS = "\x1b[2J" }, id, 0, OtherVersion, "ours is"},
		{"another network", func(o *Offer) { o.Network = "elsewhere" }, id, 0, OtherNetwork, "elsewhere"},
		{"an expired offer", func(*Offer) {}, id, offerLifetime + clockSkew + time.Second, Expired, "ago"},
		{"an offer of the future", func(*Offer) {}, id, -clockSkew - time.Second, Expired, "future"},
		{"more slots free than there are", func(o *Offer) { o.SlotsFree = 5 }, id, 0, BadOffer, "slots: 5 of 4 free"},
		{"absurdly many slots", func(o *Offer) { o.SlotsTotal = maxSlots + 1 }, id, 0, BadOffer, "slots"},
		{"negative slots", func(o *Offer) { o.SlotsFree = -1 }, id, 0, BadOffer, "slots"},
		{"absurdly many jobs", func(o *Offer) { o.Jobs = maxSlots + 1 }, id, 0, BadOffer, "jobs"},
		{"absurdly much memory", func(o *Offer) { o.MemoryBytes = 1 << 60 }, id, 0, BadOffer, "memory"},
		{"absurd speed", func(o *Offer) { o.Speed = maxSpeed + 1 }, id, 0, BadOffer, "speed"},
		{"absurd load", func(o *Offer) { o.Load = maxLoad + 1 }, id, 0, BadOffer, "load"},
		{"unknown reachability", func(o *Offer) { o.Reachability = 3 }, id, 0, BadOffer, "reachability"},
		{"an unprintable site", func(o *Offer) { o.Site = "attic\n" }, id, 0, BadOffer, "name"},
		{"an unprintable owner", func(o *Offer) { o.Owner = "alice\x1b[2J" }, id, 0, BadOffer, "name"},
		{"a long owner", func(o *Offer) { o.Owner = strings.Repeat("a", maxToken+1) }, id, 0, BadOffer, "name"},
		{"an unprintable name", func(o *Offer) { o.Release = "1\x1b[2J" }, id, 0, BadOffer, "name"},
		{"a long name", func(o *Offer) { o.Arch = strings.Repeat("a", maxToken+1) }, id, 0, BadOffer, "name"},
		{"many kinds", func(o *Offer) { o.Kinds = make([]string, maxKinds+1) }, id, 0, BadOffer, "kinds"},
		{"a long life", func(o *Offer) { o.Expires = testNow.Add(2 * maxLifetime) }, id, 0, BadOffer, "lifetime"},
		{"a negative life", func(o *Offer) { o.Expires = testNow.Add(-1) }, id, 0, BadOffer, "lifetime"},
		{"an oversized envelope", func(o *Offer) { o.Release = strings.Repeat("a", maxEnvelope) }, id, 0, BadOffer, "bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := testOffer(id)
			tt.change(&o)
			_, err := openOffer(sealUnchecked(t, &o, key), tt.from, "test", testNow.Add(tt.at))
			r, ok := errors.AsType[*Refusal](err)
			if !ok || r.Reason != tt.want || !strings.Contains(r.Error(), tt.detail) {
				t.Errorf("got %v, want %v with %q", err, tt.want, tt.detail)
			}
		})
	}
}

func TestOpenRefusesAlteredBytes(t *testing.T) {
	key, id := newKey(t)
	data := sealUnchecked(t, new(testOffer(id)), key)
	for i := range data {
		altered := bytes.Clone(data)
		altered[i] ^= 1
		if got, err := openOffer(altered, id, "test", testNow); err == nil && !reflect.DeepEqual(got, testOffer(id)) {
			t.Fatalf("byte %d altered and accepted as %+v", i, got)
		}
	}
}

func TestClockSkewIsTolerated(t *testing.T) {
	key, id := newKey(t)
	data := sealUnchecked(t, new(testOffer(id)), key)
	for _, skew := range []time.Duration{-clockSkew, 0, clockSkew} {
		if _, err := openOffer(data, id, "test", testNow.Add(skew)); err != nil {
			t.Errorf("%v off: %v", skew, err)
		}
	}
}

func TestFull(t *testing.T) {
	for _, tt := range []struct {
		name  string
		offer Offer
		want  string
	}{
		{"slots and no job limit", Offer{SlotsTotal: 2, SlotsFree: 1, Jobs: 9}, ""},
		{"no slots", Offer{SlotsTotal: 2}, "slots: 0 of 2 free"},
		{"job limit reached", Offer{SlotsTotal: 2, SlotsFree: 1, MaxJobs: 1, Jobs: 1}, "jobs: 1 of 1 running"},
		{"job limit not reached", Offer{SlotsTotal: 2, SlotsFree: 1, MaxJobs: 2, Jobs: 1}, ""},
	} {
		if got := tt.offer.full(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func FuzzOpen(f *testing.F) {
	key, id := fixedKey(f)
	f.Add(sealUnchecked(f, new(testOffer(id)), key))
	f.Add([]byte{})
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, data []byte) {
		if o, err := openOffer(data, id, "test", testNow); err == nil && o.valid() != nil {
			t.Errorf("an invalid offer was accepted: %+v", o)
		}
	})
}

// FuzzUnmarshalRecord decodes payloads as openOffer does after verifying the signature, since a hostile peer
// can sign any payload.
func FuzzUnmarshalRecord(f *testing.F) {
	_, id := fixedKey(f)
	o := testOffer(id)
	good, err := o.MarshalRecord()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{0x08, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		var o, again Offer
		if o.UnmarshalRecord(data) != nil || o.valid() != nil {
			return
		}
		encoded, err := o.MarshalRecord()
		if err != nil {
			t.Fatal(err)
		}
		if err := again.UnmarshalRecord(encoded); err != nil || !reflect.DeepEqual(o, again) {
			t.Errorf("got %+v (%v), want %+v", again, err, o)
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte{8, 0x0a, 4, 't', 'e', 's', 't', 0x10, 1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x7f})
	s := &offers{cfg: Config{Network: "other"}}
	f.Fuzz(func(t *testing.T, data []byte) {
		var req pb.Request
		if pbio.NewDelimitedReader(bytes.NewReader(data), maxRequest).ReadMsg(&req) != nil {
			return
		}
		if req.GetNetwork() == s.cfg.Network {
			return
		}
		if resp, err := s.answer(&req, "asker"); err != nil || len(resp.GetEnvelope()) > 0 {
			t.Errorf("a peer of another network got an offer: %v, %v", resp, err)
		}
	})
}
