package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// points are vectors of dims coordinates, one after the other.
type points struct {
	dims   int
	coords []float64
}

func (p points) count() int         { return len(p.coords) / p.dims }
func (p points) at(i int) []float64 { return p.coords[i*p.dims:][:p.dims] }

// squareDistance returns the square of the distance between two points.
//
// The conversion to float64 forbids to fuse product and sum into one
// instruction: replicas on different processors must find the same.
func squareDistance(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		d := x - b[i]
		sum += float64(d * d)
	}
	return sum
}

// readFile reads points from a CSV file: see read.
func readFile(name, columns string) (names []string, p points, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, points{}, fmt.Errorf("%w: %w", errInput, err)
	}
	defer f.Close()
	return read(f, name, columns)
}

// read reads a header and then a point from every line. columns names what
// makes up a point, as -columns does. The names of the columns are returned,
// and every error is an errInput that begins with file:line.
func read(r io.Reader, file, columns string) (names []string, p points, err error) {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	fail := func(line int, format string, args ...any) ([]string, points, error) {
		return nil, points{}, fmt.Errorf("%w: %s:%d: %w", errInput, file, line, fmt.Errorf(format, args...))
	}
	header, err := c.Read()
	if errors.Is(err, io.EOF) {
		return fail(1, "the file is empty, and should begin with the names of its columns")
	}
	if err != nil {
		return fail(parseError(err))
	}
	header = slices.Clone(header)
	header[0] = strings.TrimPrefix(header[0], "\uFEFF") // a byte order mark
	var chosen []int
	for {
		record, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fail(parseError(err))
		}
		if chosen == nil {
			if chosen, err = choose(header, record, columns); err != nil {
				return fail(1, "%w", err)
			}
		}
		for _, field := range chosen {
			x, err := number(record[field])
			if err != nil {
				line, _ := c.FieldPos(field)
				return fail(line, "column %s: %w", header[field], err)
			}
			p.coords = append(p.coords, x)
		}
	}
	if chosen == nil {
		return fail(1, "there are no points after the names of the columns")
	}
	for _, field := range chosen {
		names = append(names, strings.TrimSpace(header[field]))
	}
	p.dims = len(chosen)
	return names, p, nil
}

// parseError returns the line of an error of package csv, and what is wrong
// there, as arguments of fail.
func parseError(err error) (line int, format string, cause error) {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return parse.Line, "%w", parse.Err
	}
	return 1, "%w", err
}

// choose returns the numbers, from 0, of the columns that columns asks for.
func choose(header, first []string, columns string) (chosen []int, err error) {
	if columns == "" {
		for i, field := range first {
			if _, err := number(field); err == nil {
				chosen = append(chosen, i)
			}
		}
		if chosen == nil {
			return nil, errors.New("no column holds a number in the first line after the names")
		}
		return chosen, nil
	}
	for name := range strings.SplitSeq(columns, ",") {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(header, func(h string) bool { return strings.TrimSpace(h) == name })
		if n, err := strconv.Atoi(name); i < 0 && err == nil && n >= 1 && n <= len(header) {
			i = n - 1
		}
		if i < 0 {
			return nil, fmt.Errorf("there is no column %q, only %s", name, strings.Join(header, ", "))
		}
		if slices.Contains(chosen, i) {
			return nil, fmt.Errorf("column %q is chosen twice", name)
		}
		chosen = append(chosen, i)
	}
	return chosen, nil
}

// maxNumber bounds coordinates, so that no sum of squares of them overflows.
const maxNumber = 1e100

// number returns the number in a field.
func number(field string) (float64, error) {
	x, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
	switch {
	case err != nil || math.IsNaN(x) || math.IsInf(x, 0):
		return 0, fmt.Errorf("%q is no number", field)
	case math.Abs(x) > maxNumber:
		return 0, fmt.Errorf("%s is too large", field)
	}
	return x, nil
}
