package canonical_test

import (
	"bytes"
	"encoding/gob"
	"encoding/hex"
	"math"
	"math/big"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/mpj/internal/canonical"
)

type shape interface{ area() float64 }

type square struct{ Side float64 }

type named map[string]shape

type tree struct {
	Value       int
	Left, Right *tree
	Notes       map[string]any
}

// A set encodes itself, with methods of its pointer type.
type set struct{ n int }

func (s square) area() float64 { return s.Side * s.Side }
func (n named) area() (a float64) {
	for _, s := range n {
		a += s.area()
	}
	return a
}
func (s *set) GobEncode() ([]byte, error) { return strconv.AppendInt(nil, int64(s.n), 10), nil }
func (s *set) GobDecode(b []byte) (err error) {
	s.n, err = strconv.Atoi(string(b))
	return err
}

type everything struct {
	Bool    bool
	Ints    []int
	Uint    uint64
	Float   float64
	Complex complex64
	Bytes   []byte
	Array   [3]uint8
	None    [0]int
	Text    string
	Maps    map[string]map[int][]string
	Keys    map[any]string
	Any     any
	Nil     any
	Shapes  []shape
	Tree    *tree
	Sets    map[string]*set
	When    time.Time
	Big     *big.Int
	Address map[[2]int8]struct{ X, Y int }
	NaN     map[float64]int
	Rooms   struct{}
	_       int // not exported: gob omits it
}

func init() {
	gob.Register(square{})
	gob.Register(named{})
	gob.Register(tree{})
	gob.Register(&set{})
	gob.Register(map[string]any{})
	gob.Register([]any{})
}

func aTree(depth int) *tree {
	if depth <= 0 {
		return nil
	}
	return &tree{depth, aTree(depth - 1), aTree(depth - 2), map[string]any{
		"square": square{float64(depth)}, "named": named{"a": square{1}, "b": named{"c": square{2}}}, "tree": *aTreeLeaf, "set": &set{depth},
	}}
}

var aTreeLeaf = &tree{Value: 7, Notes: map[string]any{"none": nil}}

// values returns newly built values in each call, so that their maps differ in layout.
func values() []any {
	many := make(map[int]string)
	for i := range 500 {
		many[i] = strconv.Itoa(i)
	}
	all := everything{
		Bool: true, Ints: []int{-1, 0, math.MaxInt32}, Uint: math.MaxUint64, Float: -0.5, Complex: 1 - 2i, Bytes: []byte("bytes"),
		Array: [3]uint8{1, 2, 255}, Text: "text",
		Maps:   map[string]map[int][]string{"x": {3: {"c"}, 1: {"a"}, -2: nil}, "y": {}, "z": {9: {"i", "j"}}},
		Keys:   map[any]string{1: "int", "one": "string", square{2}: "square", 2.5: "float", true: "bool"},
		Any:    map[string]any{"k": []any{1, "two", square{3}, map[string]any{"deep": named{"q": square{4}}, "flat": 0}}, "l": tree{Value: 1}},
		Shapes: []shape{square{1}, nil, named{"s": square{5}, "n": named{}}},
		Tree:   aTree(4),
		Sets:   map[string]*set{"one": {1}, "two": {2}, "three": {3}},
		When:   time.Date(2020, 2, 3, 4, 5, 6, 7, time.UTC), Big: big.NewInt(1).Lsh(big.NewInt(1), 200),
		Address: map[[2]int8]struct{ X, Y int }{{1, 2}: {3, 4}, {0, 0}: {}, {-1, 5}: {6, 7}},
		NaN:     map[float64]int{math.NaN(): 1, math.NaN(): 2, 0: 3, math.Inf(-1): 4},
	}
	return []any{
		7, "text", []byte{1, 2}, []float64{1, 2.5}, true, 2 + 1i, [2]bool{true, false}, struct{}{}, struct{ X any }{nil},
		many, all, &all, map[string]everything{"a": all, "b": {}}, time.Unix(5, 0).UTC(), []shape{named{"a": square{}}, square{1}},
		*aTree(3), named{}, &struct{ S set }{},
	}
}

// again is set in a second process, which encodes types in another order.
const again = "P2PMPI_TEST_CANONICAL_AGAIN"

func digest(t *testing.T, values []any) (all []byte) {
	for _, v := range values {
		b, err := canonical.Append(nil, v)
		if err != nil {
			t.Fatalf("%T: %v", v, err)
		}
		all = append(all, b...)
	}
	return all
}

// TestAppendIsDeterministic checks that equal values have equal encodings, whatever the order in
// which a process encodes types and iterates over maps.
func TestAppendIsDeterministic(t *testing.T) {
	if os.Getenv(again) != "" {
		type first struct{ A map[string]square }
		for _, v := range []any{first{}, tree{}, named{}, []shape{}, map[any]string{}} {
			if err := gob.NewEncoder(new(bytes.Buffer)).Encode(v); err != nil {
				t.Fatal(err)
			}
		}
		os.Stdout.WriteString("\n" + hex.EncodeToString(digest(t, values())) + "\n")
		return
	}
	want := digest(t, values())
	for range 20 {
		if !bytes.Equal(digest(t, values()), want) {
			t.Fatal("the same values have two encodings in one process")
		}
	}
	second := exec.Command(os.Args[0], "-test.run=^TestAppendIsDeterministic$")
	second.Env = append(os.Environ(), again+"=1")
	out, err := second.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out, []byte("\n"+hex.EncodeToString(want)+"\n")) {
		t.Error("the encoding depends on the types that the process has encoded before")
	}
}

// TestGobDecodesAppendedValues checks that the output of Append and the output of encoding/gob
// decode to the same value.
func TestGobDecodesAppendedValues(t *testing.T) {
	for _, v := range values() {
		var plain bytes.Buffer
		if err := gob.NewEncoder(&plain).Encode(v); err != nil {
			t.Fatal(err)
		}
		b, err := canonical.Append([]byte("before"), v)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(b, []byte("before")) {
			t.Error("Append does not append")
		}
		got, want := reflect.New(reflect.TypeOf(v)), reflect.New(reflect.TypeOf(v))
		if err := gob.NewDecoder(&plain).DecodeValue(want); err != nil {
			t.Fatal(err)
		}
		rest := bytes.NewReader(b[len("before"):])
		if err := gob.NewDecoder(rest).DecodeValue(got); err != nil || rest.Len() != 0 {
			t.Errorf("%T: %v, %d bytes left", v, err, rest.Len())
			continue
		}
		// Values with NaN are never deeply equal, but their encodings are equal.
		if !bytes.Equal(digest(t, []any{got.Interface()}), digest(t, []any{want.Interface()})) {
			t.Errorf("%T: got %+v, want %+v", v, got.Elem(), want.Elem())
		}
	}
}

func TestAppendRejectsUnsupportedTypes(t *testing.T) {
	type unregistered struct{}
	for _, v := range []any{nil, make(chan int), func() {}, struct{ X any }{unregistered{}}} {
		if b, err := canonical.Append(nil, v); err == nil {
			t.Errorf("%T: % x and no error", v, b)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	floats := make([]float64, 1000)
	for i := range floats {
		floats[i] = math.Sqrt(float64(i))
	}
	words := make(map[string]int)
	for i := range 1000 {
		words["word "+strconv.Itoa(i)] = i
	}
	for _, bench := range []struct {
		name  string
		value any
	}{{"struct", square{1}}, {"floats", floats}, {"map", words}, {"interfaces", *aTree(4)}} {
		b.Run(bench.name+"/canonical", func(b *testing.B) {
			for b.Loop() {
				if _, err := canonical.Append(nil, bench.value); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(bench.name+"/gob", func(b *testing.B) {
			for b.Loop() {
				if err := gob.NewEncoder(new(bytes.Buffer)).Encode(bench.value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
