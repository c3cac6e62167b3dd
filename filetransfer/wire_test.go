package filetransfer

import (
	"bytes"
	"io"
	"testing"

	"github.com/libp2p/go-msgio/pbio"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/filetransfer/internal/pb"
)

func FuzzDecodeAsk(f *testing.F) {
	for _, msg := range []*pb.Ask{
		encodeOpen(opening{job: "job", units: 7}), encodeGot(3),
		{Rate: 1 << 20}, encodeRequest(request{unit: 2, fresh: true, items: []pieceID{{digest: DigestOf(nil), piece: 7}}}),
	} {
		good, _ := proto.Marshal(msg)
		f.Add(good)
	}
	f.Add([]byte{})
	f.Add([]byte{0x12, 0x00})
	f.Fuzz(func(t *testing.T, b []byte) {
		var msg pb.Ask
		if proto.Unmarshal(b, &msg) != nil {
			return
		}
		if o, err := decodeOpen(msg.GetOpen()); err == nil && (len(o.job) > maxJob || o.units < 1 || o.units > maxUnits) {
			t.Fatalf("%+v is valid", o)
		}
		const units = 10
		r, err := decodeRequest(msg.GetRequest(), units)
		if err != nil {
			return
		}
		if len(r.items) == 0 || len(r.items) > maxBatch || r.unit < 0 || r.unit >= units {
			t.Fatalf("%+v is valid", r)
		}
		for _, it := range r.items {
			if it.piece < 0 || it.piece > maxFileBytes/pieceSize {
				t.Fatalf("%+v is valid", it)
			}
		}
	})
}

func FuzzAnswerReader(f *testing.F) {
	const units = 13
	var b bytes.Buffer
	w := pbio.NewDelimitedWriter(&b) // a buffer never fails
	_ = w.WriteMsg(&pb.Answer{Body: &pb.Answer_Have{Have: &pb.Have{All: newBitset(units)}}})
	_ = w.WriteMsg(&pb.Answer{Body: &pb.Answer_Have{Have: &pb.Have{More: []uint32{3}}}})
	_ = w.WriteMsg(&pb.Answer{Body: &pb.Answer_Taken{Taken: &pb.Taken{Units: newBitset(units)}}})
	_ = w.WriteMsg(&pb.Answer{Body: &pb.Answer_Part{Part: &pb.Part{Length: 3}}})
	packed := encoder().EncodeAll(text(100), nil)
	f.Add(append(b.Bytes(), "abc"...))
	_ = w.WriteMsg(&pb.Answer{Body: &pb.Answer_Part{Part: &pb.Part{Length: 100, Packed: uint32(len(packed))}}})
	f.Add(append(append(b.Bytes(), "abc"...), packed...))
	f.Add([]byte{4, 10, 2, 8, 1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newAnswerReader(bytes.NewReader(b), units)
		for {
			a, err := r.next()
			if err != nil {
				return
			}
			if a.size > pieceSize || a.packed > 0 && a.packed >= a.size {
				t.Fatalf("part of %d bytes compressed to %d", a.size, a.packed)
			}
			if a.size > 0 && r.bytes(make([]byte, a.size), a.packed) != nil {
				return
			}
			for _, set := range []bitset{a.taken, a.have} {
				if set != nil && (len(set) != len(newBitset(units)) || set.has(units) || set.has(units+1)) {
					t.Fatalf("the reader returned the set %v of %d units", set, units)
				}
			}
			for _, u := range a.more {
				if u >= units {
					t.Fatalf("the reader returned unit %d of %d", u, units)
				}
			}
		}
	})
}

func TestMaximumBatchOfRequestsFitsItsBound(t *testing.T) {
	r := request{unit: maxUnits - 1, fresh: true, items: make([]pieceID, maxBatch)}
	for i := range r.items {
		r.items[i].piece = maxFileBytes / pieceSize
	}
	msg := encodeRequest(r)
	if n := proto.Size(msg); n > maxAsk {
		t.Errorf("a request has %d bytes, the limit is %d", n, maxAsk)
	}
	if err := pbio.NewDelimitedWriter(io.Discard).WriteMsg(msg); err != nil {
		t.Error(err)
	}
}

func TestMaximumHaveFitsItsBound(t *testing.T) {
	have := &pb.Have{More: make([]uint32, maxMore)}
	for i := range have.More {
		have.More[i] = maxUnits - 1
	}
	var b bytes.Buffer
	_ = pbio.NewDelimitedWriter(&b).WriteMsg(&pb.Answer{Body: &pb.Answer_Have{Have: have}}) // a buffer never fails
	if a, err := newAnswerReader(&b, maxUnits).next(); err != nil || len(a.more) != maxMore {
		t.Errorf("the reader returned %d units, %v", len(a.more), err)
	}
}
