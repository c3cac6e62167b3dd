package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	for _, tc := range []struct {
		name, file, columns string
		names               []string
		coords              []float64
	}{
		{"all numbers", "x,y\n1,2\n3,4\n", "", []string{"x", "y"}, []float64{1, 2, 3, 4}},
		{"columns of words are skipped", "kind,x,place,y\na,1,b,2\nc,3,d,4\n", "", []string{"x", "y"}, []float64{1, 2, 3, 4}},
		{"by name", "x,y,z\n1,2,3\n", "z,x", []string{"z", "x"}, []float64{3, 1}},
		{"by number", "x,y,z\n1,2,3\n", "3, 1", []string{"z", "x"}, []float64{3, 1}},
		{"a name that is a number takes precedence", "2,1\n7,8\n", "1", []string{"1"}, []float64{8}},
		{"spaces, quotes, CRLF, blank lines", " x ,\"y\"\"\"\r\n 1 ,\" 2\"\r\n\r\n3,-4e1", "", []string{"x", `y"`}, []float64{1, 2, 3, -40}},
		{"byte order mark", "\uFEFFx\n1\n", "x", []string{"x"}, []float64{1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			names, p, err := read(strings.NewReader(tc.file), "f", tc.columns)
			if err != nil || !slices.Equal(names, tc.names) || !slices.Equal(p.coords, tc.coords) || p.dims != len(tc.names) {
				t.Errorf("read returned columns %q and points %v, %v", names, p, err)
			}
		})
	}
}

func TestMistakesInAFileAreReportedWithTheirLine(t *testing.T) {
	for _, tc := range []struct{ name, file, columns, want string }{
		{"empty", "", "", "f.csv:1: the file is empty"},
		{"only names", "x,y\n", "", "f.csv:1: there are no points"},
		{"no number", "x,y\n1,2\n3,four\n", "", `f.csv:3: column y: "four" is not a number`},
		{"missing value", "x,y\n1,2\n3,\n", "", `f.csv:3: column y: "" is not a number`},
		{"after a field of two lines", "x,y\n1,\"a\nb\"\nz,c\n", "", `f.csv:4: column x: "z" is not a number`},
		{"not a number", "x\n1\nNaN\n", "", `f.csv:3: column x: "NaN" is not a number`},
		{"infinite", "x\n1\n1e999\n", "", `f.csv:3: column x: "1e999" is not a number`},
		{"huge", "x\n1\n1e200\n", "", `f.csv:3: column x: 1e200 is too large`},
		{"too few fields", "x,y\n1,2\n3\n", "", "f.csv:3: wrong number of fields"},
		{"too many fields", "x,y\n1,2,3\n", "", "f.csv:2: wrong number of fields"},
		{"quote not closed", "x,y\n1,\"2\n", "", "f.csv:2: extraneous or missing"},
		{"no number at all", "x,y\na,b\n", "", "f.csv:1: no column has a number"},
		{"unknown column", "x,y\n1,2\n", "z", `f.csv:1: no column "z": want one of x, y`},
		{"column 0", "x,y\n1,2\n", "0", `f.csv:1: no column "0"`},
		{"column twice", "x,y\n1,2\n", "x,1", `f.csv:1: column "1" is given twice`},
		{"binary", "x\n\x00\xff\n", "", "f.csv:1: no column has a number"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := read(strings.NewReader(tc.file), "f.csv", tc.columns)
			if !errors.Is(err, errInput) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("read returned %v, want %s", err, tc.want)
			}
		})
	}
}

// FuzzRead checks that read returns complete, finite points for any input, or an error.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"x,y\n1,2\n", "", "a\n\"\n", "x,y\n1,2,3\n", "\uFEFFx\n1e100\n", "x\r\n1\r\n\r\n"} {
		f.Add(s, "")
	}
	f.Add("x,y\n1,2\n", "y,1")
	f.Fuzz(func(t *testing.T, file, columns string) {
		names, p, err := read(strings.NewReader(file), "f", columns)
		switch {
		case err != nil && !errors.Is(err, errInput):
			t.Error(err)
		case err == nil && (len(names) == 0 || p.dims != len(names) || p.count() == 0 || len(p.coords)%p.dims != 0):
			t.Errorf("read accepted columns %q and points %v", names, p)
		}
	})
}
