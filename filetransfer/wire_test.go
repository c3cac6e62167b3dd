package filetransfer

import (
	"bytes"
	"io"
	"testing"

	"github.com/libp2p/go-msgio/pbio"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/filetransfer/internal/pb"
)

func FuzzDecodeRequest(f *testing.F) {
	good, _ := proto.Marshal(encodeRequest("job", []need{{Want: Want{Digest: DigestOf(nil)}, offset: 7}}))
	f.Add(good)
	f.Add([]byte{})
	f.Add([]byte{0x12, 0x00})
	f.Fuzz(func(t *testing.T, b []byte) {
		var msg pb.Request
		if proto.Unmarshal(b, &msg) != nil {
			return
		}
		rs, err := decodeRequest(&msg)
		if err != nil {
			return
		}
		if len(rs) == 0 || len(rs) > batch {
			t.Fatalf("%d requests passed", len(rs))
		}
		for _, r := range rs {
			if r.offset < 0 || r.offset > MaxFileBytes || len(r.job) > maxJob {
				t.Fatalf("%+v passed", r)
			}
		}
	})
}

func FuzzChunkReader(f *testing.F) {
	var b bytes.Buffer
	_ = pbio.NewDelimitedWriter(&b).WriteMsg(&pb.Chunk{Length: 3, Last: true}) // a buffer never fails
	f.Add(append(b.Bytes(), "abc"...))
	f.Add([]byte{2, 8, 0xff})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newChunkReader(bytes.NewReader(b))
		for {
			got, _, err := r.next()
			if err != nil {
				return
			}
			if len(got) > maxChunk || len(got) > len(b) {
				t.Fatalf("chunk of %d bytes out of %d", len(got), len(b))
			}
		}
	})
}

func TestRequestsOfAFullBatchFitTheirBound(t *testing.T) {
	needs := make([]need, batch)
	for i := range needs {
		needs[i].offset = MaxFileBytes
	}
	msg := encodeRequest(string(make([]byte, maxJob)), needs)
	if n := proto.Size(msg); n > maxRequest {
		t.Errorf("a request has %d bytes, at most %d are read", n, maxRequest)
	}
	if err := pbio.NewDelimitedWriter(io.Discard).WriteMsg(msg); err != nil {
		t.Error(err)
	}
}
