package mpj

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"net/netip"
	"reflect"
	"testing"
)

// FuzzDecode checks that a message of another rank decodes to a value or an error.
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

// TestValuesMayEncodeThemselves checks that a value that encodes itself is sent in its own
// encoding.
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

// A figure contains values that encoding/gob encodes differently in each process: maps, and
// interfaces.
type figure struct {
	Names map[string]int
	Any   map[int]any
}

func aFigure(rank int) figure {
	f := figure{Names: make(map[string]int), Any: make(map[int]any)}
	for i := range 20 {
		f.Names[fmt.Sprint("name ", i)] = rank + i
		f.Any[i] = fmt.Sprint(i)
	}
	f.Any[-1], f.Any[-2] = []int{rank}, map[string]any{"a": 1, "b": "c", "d": nil}
	return f
}

// TestReplicasSendEqualMaps checks that maps are sent sorted. Replicas iterate over maps in
// different orders, but must send the same message.
func TestReplicasSendEqualMaps(t *testing.T) {
	gob.Register(map[string]any{})
	gob.Register([]int{})
	inEveryShape(t, func(w *World) error {
		to, from := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
		if err := SendValue(w.Comm, aFigure(w.Rank()), to, 0); err != nil {
			return err
		}
		got, _, err := RecvValue[figure](w.Comm, from, 0)
		if err == nil && !reflect.DeepEqual(got, aFigure(from)) {
			err = fmt.Errorf("got %v of rank %d", got, from)
		}
		return err
	})
}

// TestValuesDoNotDependOnEarlierTypes checks that messages do not depend on the order in which
// encoding/gob first encoded types. Goroutines encode types in any order, and a process that resumes
// from a checkpoint encodes fewer of them.
func TestValuesDoNotDependOnEarlierTypes(t *testing.T) {
	type later struct{ X, Y int }
	v := figure{Names: map[string]int{"a": 1}}
	before, err := encode(new(Comm), "SendValue", v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := encode(new(Comm), "SendValue", []later{{1, 2}}); err != nil {
		t.Fatal(err)
	}
	type equal struct {
		Names map[string]int
		Any   map[int]any
	}
	after, err := encode(new(Comm), "SendValue", equal(v))
	if err != nil || !bytes.Equal(after, before) {
		t.Errorf("%q, %v; before another type was sent, an equal value was %q", after, err, before)
	}
}

func BenchmarkValue(b *testing.B) {
	short := struct {
		Rank int
		Name string
	}{7, "seven"}
	b.Run("short", func(b *testing.B) { benchmarkValue(b, short) })
	b.Run("figure", func(b *testing.B) {
		gob.Register(map[string]any{})
		gob.Register([]int{})
		benchmarkValue(b, aFigure(1))
	})
	b.Run("floats", func(b *testing.B) { benchmarkValue(b, make([]float64, 1000)) })
}

func benchmarkValue[V any](b *testing.B, v V) {
	b.ReportAllocs()
	for b.Loop() {
		m, err := encode(new(Comm), "SendValue", v)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := decode[V](new(Comm), "RecvValue", m); err != nil {
			b.Fatal(err)
		}
	}
}
