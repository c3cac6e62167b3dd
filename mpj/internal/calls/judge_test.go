package calls

import (
	"fmt"
	"strings"
	"testing"
)

func name(i int) string { return fmt.Sprintf("rank %d", i) }

// bcast returns a call of Bcast, modified by change.
func bcast(change func(*Call)) Call {
	c := Call{Op: "Bcast", Type: "int", Count: 4, Where: "x.go:1"}
	if change != nil {
		change(&c)
	}
	return c
}

func parts(counts ...int) (all []Part) {
	for i, n := range counts {
		all = append(all, Part{Rank: i, Count: n})
	}
	return all
}

func vector(out, in []Part) Call {
	return Call{Op: "Alltoallv", Root: None, Count: None, Type: "int", Out: out, In: in}
}

func TestJudge(t *testing.T) {
	right := bcast(nil)
	cases := []struct {
		name string
		all  []Call
		want Kind
		says []string
	}{
		{"alike", []Call{right, right, right}, Nothing, nil},
		{"alone", []Call{right}, Nothing, nil},
		{"different calls", []Call{right, right, {Op: "Barrier", Root: None, Count: None}}, Ops,
			[]string{"rank 0 calls Bcast(4 int, root 0) at x.go:1, rank 2 calls Barrier()"}},
		{"different roots", []Call{right, bcast(func(c *Call) { c.Root = 1 })}, Roots, []string{"rank 1 calls Bcast(4 int, root 1)"}},
		{"different types", []Call{right, bcast(func(c *Call) { c.Type = "float64" })}, Types, []string{"(4 float64, root 0)"}},
		{"different counts", []Call{right, bcast(func(c *Call) { c.Count = 5 })}, Counts, []string{"(5 int, root 0)"}},
		{"different lists of counts", []Call{bcast(func(c *Call) { c.Counts = []int{1, 2} }), bcast(func(c *Call) { c.Counts = []int{2, 2} })},
			Counts, []string{"counts [1 2]", "counts [2 2]"}},
		{"one invalid", []Call{right, bcast(func(c *Call) { c.Invalid = "too long" })}, Validity, []string{"the second call is invalid: too long"}},
		{"all invalid", []Call{bcast(func(c *Call) { c.Invalid = "a" }), bcast(func(c *Call) { c.Invalid = "b" })}, Nothing, nil},
		{"different operations", []Call{bcast(func(c *Call) { c.Operation = "Sum" }), bcast(func(c *Call) { c.Operation = "Max" })},
			Operations, []string{"Sum", "Max"}},
		{"an operation without a name", []Call{bcast(func(c *Call) { c.Operation = "Sum" }), right}, Nothing, nil},
		{"different operations separated by one without a name", []Call{right, bcast(func(c *Call) { c.Operation = "Sum" }), bcast(func(c *Call) { c.Operation = "Max" })},
			Operations, []string{"rank 1 calls", "rank 2 calls"}},
		{"in place", []Call{bcast(func(c *Call) { c.Place = InPlace }), right, bcast(func(c *Call) { c.Place = Apart })},
			Places, []string{"rank 0 calls Bcast(4 int, in place, root 0)", "rank 2 calls"}},
		{"arguments", []Call{bcast(func(c *Call) { c.Alike = "dims [2]" }), bcast(func(c *Call) { c.Alike = "dims [3]" })},
			Arguments, []string{"dims [2]", "dims [3]"}},
		{"arguments separated by a rank that abstains", []Call{bcast(func(c *Call) { c.Abstains = true }), bcast(func(c *Call) { c.Alike = "kind 0" }),
			bcast(func(c *Call) { c.Alike = "kind 1" })}, Arguments, []string{"rank 1 calls", "rank 2 calls"}},
		{"a rank that abstains", []Call{bcast(func(c *Call) { c.Alike = "kind 0" }), bcast(func(c *Call) { c.Abstains = true })}, Nothing, nil},
		{"own arguments", []Call{bcast(func(c *Call) { c.Own = "color 1" }), bcast(func(c *Call) { c.Own = "color 2" })}, Nothing, nil},
		{"matching exchanges", []Call{vector(parts(1, 2), parts(1, 3)), vector(parts(3, 4), parts(2, 4))}, Nothing, nil},
		{"more data than expected", []Call{vector(parts(1, 2), parts(1, 3)), vector(parts(4, 4), parts(2, 4))}, Counts,
			[]string{"rank 1 sends 4 where rank 0 expects 3: rank 1 calls Alltoallv(int, sends [4 4], receives [2 4])"}},
		{"data that is not sent", []Call{vector(nil, parts(1)), vector(nil, nil)}, Arguments, []string{"rank 0 expects data from rank 0"}},
		{"data that is not expected", []Call{vector(nil, nil), vector(parts(1), nil)}, Arguments, []string{"rank 1 sends data to rank 0"}},
		{"from an unknown rank", []Call{vector(nil, []Part{{Rank: 9}})}, Arguments, []string{"from rank 9"}},
		{"edges with tags", []Call{
			vector([]Part{{1, 0, 5}, {1, 1, 6}}, nil), vector(nil, []Part{{0, 1, 6}, {0, 0, 5}})}, Nothing, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := Judge(c.all, name)
			if got.Kind != c.want {
				t.Errorf("got %v (%s), want %v", got.Kind, got.Text, c.want)
			}
			for _, says := range c.says {
				if !strings.Contains(got.Text, says) {
					t.Errorf("got %q, which does not contain %q", got.Text, says)
				}
			}
		})
	}
}

func TestOperationName(t *testing.T) {
	for function, want := range map[string]string{
		"github.com/p2pmpi/p2pmpi/mpj.Sum[...]":              "Sum",
		"example.com/x/prog.merge":                           "prog.merge",
		"main.main.func1":                                    "",
		"main.solve[...].func2":                              "",
		"github.com/p2pmpi/p2pmpi/mpj.Each[...].func1":       "",
		"main.(*table).merge-fm":                             "main.(*table).merge-fm",
		"github.com/p2pmpi/p2pmpi/mpj.MaxLoc[go.shape.int]":  "MaxLoc[go.shape.int]",
		"github.com/p2pmpi/p2pmpi/mpj.(*World).x.func3.deep": "",
	} {
		if got := OperationName(function); got != want {
			t.Errorf("%s: got %q, want %q", function, got, want)
		}
	}
}

// TestStringIsShort checks that long lists are truncated, so that a report stays readable.
func TestStringIsShort(t *testing.T) {
	many := make([]int, 5000)
	c := Call{Op: "X", Root: None, Count: None, Counts: many, Out: parts(many...), In: parts(many...), Alike: strings.Repeat("é", 5000)}
	if got := c.String(); len(got) > 500 || !strings.Contains(got, "and 4992 more") {
		t.Errorf("got %d bytes: %s", len(got), got)
	}
}

// FuzzDecode checks that arbitrary data is rejected, or decodes to a call that Judge accepts as
// input.
func FuzzDecode(f *testing.F) {
	b, err := Encode(vector(parts(1, 2), parts(3)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"Op":"","Out":[{"Rank":-5,"Count":-1}],"Place":9}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Decode(b)
		if err != nil {
			return
		}
		if again, err := Encode(c); err != nil {
			t.Errorf("%+v, encoded as %s: %v", c, again, err)
		}
		d := Judge([]Call{bcast(nil), c, c}, name)
		if b, err := EncodeDifference(d); err != nil {
			t.Errorf("encode difference %v: %v", d, err)
		} else if _, err := DecodeDifference(b); err != nil {
			t.Errorf("decode difference %s: %v", b, err)
		}
	})
}
