package view

import (
	"bytes"
	"testing"
)

// FuzzDecodeChange checks that a decoded change has the same encoding, byte for byte.
func FuzzDecodeChange(f *testing.F) {
	f.Add(Change{Process: Process{Rank: 300, Replica: 2}, To: Failed}.Encode())
	f.Add(Change{Process: Process{}, To: Finished}.Encode())
	f.Add(Change{Process: Process{Replica: 1}, Since: 1 << 40}.Encode())
	f.Add(Change{Process: Process{Replica: 1}, Aside: true, At: 9}.Encode())
	f.Add(Change{Process: Process{Replica: 1}, Since: 3, At: 1 << 40}.Encode())
	f.Add([]byte{1, 0x80, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeChange(b)
		if err == nil && !bytes.Equal(c.Encode(), b) {
			t.Errorf("%x decodes to %v, which encodes to %x", b, c, c.Encode())
		}
	})
}
