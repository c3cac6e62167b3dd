package mpj

import (
	"fmt"
	"net/netip"
	"testing"
)

// FuzzDecode holds that a value that another rank sends is one or an error.
func FuzzDecode(f *testing.F) {
	type value struct {
		Name  string
		Parts map[string][]int
	}
	b, err := encode(new(Comm), "SendValue", value{"x", map[string][]int{"a": {1, 2}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-1])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := decode[value](new(Comm), "RecvValue", b)
		if err != nil {
			return
		}
		if _, err := encode(new(Comm), "SendValue", v); err != nil {
			t.Errorf("%+v was received and cannot be sent: %v", v, err)
		}
	})
}

// A value that encodes itself travels as it says.
func TestValuesMayEncodeThemselves(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		sent := netip.AddrFrom4([4]byte{10, 0, 0, byte(w.Rank())})
		to, from := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
		if err := SendValue(w.Comm, sent, to, 0); err != nil {
			return err
		}
		got, s, err := RecvValue[netip.Addr](w.Comm, from, 0)
		if err == nil && (got.As4()[3] != byte(from) || s.Size != 4) {
			err = fmt.Errorf("got %v in %d bytes", got, s.Size)
		}
		return err
	})
}
