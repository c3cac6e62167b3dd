package frame

import (
	"bytes"
	"testing"
)

// FuzzHeader checks that every decoded header encodes to the same bytes. So each header has exactly one encoding,
// which cannot contain hidden data.
func FuzzHeader(f *testing.F) {
	f.Add(AppendHeader(nil, Header{Kind: Data, Context: 2, Rank: 1, Tag: -1, Seq: 7, Size: 9}))
	f.Add(AppendHeader(nil, Header{Kind: SyncReply, Size: MaxPayload}))
	f.Add(make([]byte, HeaderSize))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b)
		if err != nil {
			return
		}
		if again := AppendHeader(nil, h); !bytes.Equal(again, b) {
			t.Errorf("%x decodes to %+v, which encodes to %x", b, h, again)
		}
	})
}
