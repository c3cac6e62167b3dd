package frame

import (
	"bytes"
	"testing"
)

// FuzzHeader checks that what decodes encodes to the same bytes: every header has one form, without room
// for hidden data.
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
