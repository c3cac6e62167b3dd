package protection

import (
	"errors"
	"reflect"
	"testing"
)

func past() []byte {
	m := Message{Context: 300, Source: 2, Dest: 1, Tag: -7, Seq: 1 << 40, Sync: true, Payload: []byte("hello")}
	b := append(AppendMessage(nil, &m), m.Payload...)
	b = AppendOutcome(b, &Determinant{Point: Point{Context: 1, Index: 9}, Outcome: []byte("head")})
	return append(b, AppendMessage(nil, &Message{Source: 3, Dest: 1, Seq: 2})...)
}

func TestAPastIsReadAsItWasWritten(t *testing.T) {
	want := []Record{
		{Message: &Message{Context: 300, Source: 2, Dest: 1, Tag: -7, Seq: 1 << 40, Sync: true, Payload: []byte("hello")}},
		{Outcome: Determinant{Point: Point{Context: 1, Index: 9}, Outcome: []byte("head")}},
		{Message: &Message{Source: 3, Dest: 1, Seq: 2, Payload: []byte{}}},
	}
	b := past()
	for _, w := range want {
		got, rest, err := ReadRecord(b, 1)
		if err != nil || !reflect.DeepEqual(got, w) {
			t.Errorf("read %+v, %v; want %+v", got, err, w)
		}
		b = rest
	}
	if len(b) != 0 {
		t.Errorf("%d bytes are left", len(b))
	}
}

func TestARecordThatIsCutOffSaysSo(t *testing.T) {
	b := past()
	_, rest, _ := ReadRecord(b, 1)
	for n := range len(b) - len(rest) {
		if _, _, err := ReadRecord(b[:n], 1); !errors.Is(err, ErrCut) {
			t.Errorf("%d bytes: %v, want that they are cut off", n, err)
		}
	}
}

// FuzzReadRecord holds that no bytes of another process do harm, and that what is
// read means the same when it is written and read again.
func FuzzReadRecord(f *testing.F) {
	f.Add(past())
	f.Add([]byte("m\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Add([]byte("s\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte("o"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, rest, err := ReadRecord(b, 1)
		if err != nil {
			return
		}
		var again []byte
		if m := r.Message; m != nil {
			again = append(AppendMessage(nil, m), m.Payload...)
		} else {
			again = AppendOutcome(nil, &r.Outcome)
		}
		if len(again) > len(b)-len(rest) {
			t.Errorf("%x was read as %+v, which is the longer %x", b, r, again)
		}
		if got, left, err := ReadRecord(again, 1); err != nil || len(left) > 0 || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v was read back as %+v, %v", r, got, err)
		}
	})
}
