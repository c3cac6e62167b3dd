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

// squareDistance returns the squared distance between two points.
//
// The conversion to float64 prevents the fusion of a product and a sum into one instruction, because
// replicas on different processors must get the same result.
func squareDistance(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		d := x - b[i]
		sum += float64(d * d)
	}
	return sum
}

// readFile reads points from a CSV file; see read.
func readFile(name, columns string) (names []string, p points, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, points{}, fmt.Errorf("%w: %w", errInput, err)
	}
	defer f.Close()
	return read(f, name, columns)
}

// A failure describes an error in a line of the file.
type failure struct {
	line int
	err  error
}

// read reads a header, and then a point from every line. columns selects the columns of a point, in
// the format of -columns; read returns the names of these columns. Every error is an errInput that
// begins with file:line.
func read(r io.Reader, file, columns string) (names []string, p points, err error) {
	names, p, wrong := readLines(csv.NewReader(r), columns)
	if wrong != nil {
		return nil, points{}, fmt.Errorf("%w: %s:%d: %w", errInput, file, wrong.line, wrong.err)
	}
	return names, p, nil
}

func readLines(c *csv.Reader, columns string) (names []string, p points, wrong *failure) {
	header, err := c.Read()
	if err != nil {
		return nil, p, readFailure(err, "the file is empty, but should begin with the names of its columns")
	}
	header[0] = strings.TrimPrefix(header[0], "\uFEFF") // a byte order mark
	first, err := c.Read()
	if err != nil {
		return nil, p, readFailure(err, "there are no points after the names of the columns")
	}
	chosen, err := choose(header, first, columns)
	if err != nil {
		return nil, p, &failure{1, err}
	}
	for _, field := range chosen {
		names = append(names, strings.TrimSpace(header[field]))
	}
	p.dims = len(chosen)
	for record := first; err == nil; record, err = c.Read() {
		for _, field := range chosen {
			x, err := number(record[field])
			if err != nil {
				line, _ := c.FieldPos(field)
				return nil, p, &failure{line, fmt.Errorf("column %s: %w", header[field], err)}
			}
			p.coords = append(p.coords, x)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, p, readFailure(err, "")
	}
	return names, p, nil
}

// readFailure returns the line in which reading failed, and the reason. At the end of the file, the
// reason is atEnd.
func readFailure(err error, atEnd string) *failure {
	var parse *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return &failure{1, errors.New(atEnd)}
	case errors.As(err, &parse):
		return &failure{parse.Line, parse.Err}
	}
	return &failure{1, err}
}

// choose returns the numbers, from 0, of the columns that columns selects.
func choose(header, first []string, columns string) (chosen []int, err error) {
	if columns == "" {
		for i, field := range first {
			if _, err := number(field); err == nil {
				chosen = append(chosen, i)
			}
		}
		if chosen == nil {
			return nil, errors.New("no column has a number in the first line after the names")
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
			return nil, fmt.Errorf("no column %q: want one of %s", name, strings.Join(header, ", "))
		}
		if slices.Contains(chosen, i) {
			return nil, fmt.Errorf("column %q is given twice", name)
		}
		chosen = append(chosen, i)
	}
	return chosen, nil
}

// maxNumber bounds the coordinates, so that no sum of their squares overflows.
const maxNumber = 1e100

// number parses the number in a field.
func number(field string) (float64, error) {
	x, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
	switch {
	case err != nil || math.IsNaN(x) || math.IsInf(x, 0):
		return 0, fmt.Errorf("%q is not a number", field)
	case math.Abs(x) > maxNumber:
		return 0, fmt.Errorf("%s is too large", field)
	}
	return x, nil
}
