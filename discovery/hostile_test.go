package discovery

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/discovery/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/background"
	"github.com/p2pmpi/p2pmpi/internal/logtest"
	"github.com/p2pmpi/p2pmpi/internal/recording"
)

// fixedKey returns a key that is the same in every process of a fuzzer, so that signatures remain valid
// in other processes.
func fixedKey(f *testing.F) (crypto.PrivKey, p2ppeer.ID) {
	f.Helper()
	key, _, err := crypto.GenerateEd25519Key(bytes.NewReader(make([]byte, 64)))
	if err != nil {
		f.Fatal(err)
	}
	id, err := p2ppeer.IDFromPrivateKey(key)
	if err != nil {
		f.Fatal(err)
	}
	return key, id
}

// FuzzConverse: whatever a peer answers to a request for its offer, an accepted offer is valid.
func FuzzConverse(f *testing.F) {
	key, id := fixedKey(f)
	o := testOffer(id)
	o.Issued, o.Expires = time.Now(), time.Now().Add(offerLifetime)
	good := &pb.Response{Envelope: sealUnchecked(f, &o, key), Hearsay: []*pb.Hearsay{{Peer: []byte(id), Position: toPB(newCoordinates().here())}}}
	f.Add(recording.Of(f, good, &pb.Response{}, &pb.Response{}))
	f.Add(recording.Of(f, good, &pb.Response{}))
	f.Add(recording.Of(f, &pb.Response{Refusal: pb.Response_OTHER_NETWORK}))
	f.Add(recording.Of(f, &pb.Response{Envelope: []byte("nonsense")}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		o := &offers{cfg: Config{Network: "test"}, coordinates: newCoordinates()}
		offer, rtt, err := o.converse(recording.New(id, b))
		if err == nil && (offer.valid() != nil || offer.Peer != id || offer.Network != "test" || rtt <= 0) {
			t.Errorf("an invalid offer was accepted: %+v, %v", offer, rtt)
		}
	})
}

// FuzzTwinRequest: any request for a duplicate is answered or refused.
func FuzzTwinRequest(f *testing.F) {
	h := newHost(f)
	_, stranger := fixedKey(f)
	d := newDuplicates(h, nil, background.New(context.Background()), nil)
	nonce := bytes.Repeat([]byte{7}, nonceSize)
	f.Add(recording.Of(f, &pb.TwinRequest{Nonce: nonce}))
	f.Add(recording.Of(f, &pb.TwinRequest{Nonce: nonce, Instance: newInstance()}))
	f.Add(recording.Of(f, &pb.TwinRequest{Nonce: nonce[1:]}))
	f.Add([]byte{0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		err := d.answer(t.Context(), recording.New(stranger, b))
		var req pb.TwinRequest
		readable := pbio.NewDelimitedReader(bytes.NewReader(b), maxDuplicate).ReadMsg(&req) == nil
		if want := readable && len(req.GetNonce()) == nonceSize; (err == nil) != want {
			t.Errorf("request %v: %v", &req, err)
		}
	})
}

// FuzzTwinResponse: only a process that has this peer's key and has run for longer is accepted as a
// duplicate of this peer.
func FuzzTwinResponse(f *testing.F) {
	key, id := fixedKey(f)
	nonce := bytes.Repeat([]byte{7}, nonceSize)
	own := proof{Instance: newInstance()}
	older := sealUnchecked(f, &proof{nonce, newInstance(), time.Hour}, key)
	f.Add(recording.Of(f, &pb.TwinResponse{Envelope: older, Address: []byte{4, 127, 0, 0, 1}}))
	f.Add(recording.Of(f, &pb.TwinResponse{Envelope: older, Address: []byte("nowhere")}))
	f.Add(recording.Of(f, &pb.TwinResponse{}))
	f.Add([]byte{0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		resp, err := exchangeDuplicate(recording.New(id, b), &pb.TwinRequest{Nonce: nonce, Instance: own.Instance})
		if err != nil {
			return
		}
		if duplicate, err := own.duplicateOf(resp, id, nonce); duplicate != nil && (err != nil || duplicate.Up != time.Hour) {
			t.Errorf("response %v: got duplicate %v, %v", resp, duplicate, err)
		}
	})
}

// TestPeerWithAnInvalidOfferIsLogged repeatedly requests offers from peers that send invalid ones. Each of
// these peers is logged, but not every time. A peer that offers nothing, or whose clock is wrong, is not
// logged.
func TestPeerWithAnInvalidOfferIsLogged(t *testing.T) {
	var log logtest.Log
	cfg := testConfig()
	cfg.Log = zerolog.New(&log).Level(zerolog.InfoLevel)
	s := newService(t, newHost(t), cfg)
	for name, tt := range map[string]struct {
		answer func(Offer, crypto.PrivKey) []byte
		named  bool
	}{
		"too long":   {func(Offer, crypto.PrivKey) []byte { return []byte{0xff, 0xff, 0xff, 0x7f} }, true},
		"truncated":  {func(Offer, crypto.PrivKey) []byte { return []byte{100, 1} }, true},
		"no message": {func(Offer, crypto.PrivKey) []byte { return []byte{3, 0xff, 0xff, 0xff} }, true},
		"no offer": {func(Offer, crypto.PrivKey) []byte {
			return recording.Of(t, &pb.Response{Envelope: []byte("nonsense")})
		}, true},
		"absurd": {func(o Offer, key crypto.PrivKey) []byte {
			o.SlotsFree = o.SlotsTotal + 1
			return recording.Of(t, &pb.Response{Envelope: sealUnchecked(t, &o, key)})
		}, true},
		"empty": {func(Offer, crypto.PrivKey) []byte { return nil }, false},
		"old": {func(o Offer, key crypto.PrivKey) []byte {
			return recording.Of(t, &pb.Response{Envelope: sealUnchecked(t, &o, key)})
		}, false},
	} {
		key, id := newKey(t)
		h := newHost(t, libp2p.Identity(key))
		answer := tt.answer(testOffer(id), key)
		h.SetStreamHandler(offerProtocol, func(st network.Stream) {
			_, _ = st.Write(answer)
			_ = st.Close()
		})
		for range 10 {
			if _, refusal := s.offers.ask(testContext(t), addrInfo(h)); refusal == nil {
				t.Errorf("%s: accepted as an offer", name)
			}
		}
		if lines := log.Warnings(id.String()); (lines == 1) != tt.named || lines > 1 {
			t.Errorf("%s: named in %d lines", name, lines)
		}
	}
}
