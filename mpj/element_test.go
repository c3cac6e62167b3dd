package mpj

import (
	"testing"
	"unsafe"
)

// dirty returns Locs whose bytes were all ones before their fields were set.
func dirty[V Ordered](value V, index int64) []Loc[V] {
	s := make([]Loc[V], 2)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), 2*unsafe.Sizeof(s[0]))
	for i := range b {
		b[i] = 0xff
	}
	for i := range s {
		s[i].Value, s[i].Index = value, index
	}
	return s
}

// TestPaddingIsSentAsZero checks that replicas that send the same values send the same bytes.
func TestPaddingIsSentAsZero(t *testing.T) {
	same := map[string]bool{
		"int8":    string(bytesOf(dirty[int8](-1, -2))) == string(bytesOf([]Loc[int8]{{-1, -2}, {-1, -2}})),
		"uint16":  string(bytesOf(dirty[uint16](7, -2))) == string(bytesOf([]Loc[uint16]{{7, -2}, {7, -2}})),
		"float32": string(bytesOf(dirty[float32](7, -2))) == string(bytesOf([]Loc[float32]{{7, -2}, {7, -2}})),
		"int32":   string(bytesOf(dirty[int32](7, -2))) == string(bytesOf([]Loc[int32]{{7, -2}, {7, -2}})),
		"int64":   string(bytesOf(dirty[int64](7, -2))) == string(bytesOf([]Loc[int64]{{7, -2}, {7, -2}})),
	}
	for name, ok := range same {
		if !ok {
			t.Errorf("Loc[%s]: different bytes for the same values", name)
		}
	}
	if got := bytesOf([]complex128{complex(1, -1)}); len(got) != 16 || got[7] == 0 {
		t.Errorf("complex128: %x", got)
	}
	if s := dirty[int32](5, 6); len(bytesOf(s)) != 32 || s[1] != (Loc[int32]{5, 6}) {
		t.Errorf("values changed: %v", s)
	}
}
