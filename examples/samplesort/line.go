package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
)

// A line is what is sorted.
type line struct {
	text   []byte // without the newline
	number int64  // its value, when integers are sorted
	at     int64  // where it begins in the file: two lines are never equal
}

// compare orders lines by number, then by text unless numbers are sorted, and
// equal ones by their place in the file.
func (o options) compare(a, b line) int {
	if o.integers {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.at, b.at))
	}
	return cmp.Or(bytes.Compare(a.text, b.text), cmp.Compare(a.at, b.at))
}

// split cuts text, which begins at the given place of the file, into lines.
func split(text []byte, at int64) []line {
	lines := make([]line, 0, bytes.Count(text, newline)+1)
	for len(text) > 0 {
		one, rest, _ := bytes.Cut(text, newline)
		lines = append(lines, line{text: one, at: at})
		at += int64(len(text) - len(rest))
		text = rest
	}
	return lines
}

var newline = []byte{'\n'}

// join is the opposite of split: the text of lines, each with its newline.
func join(lines []line) []byte {
	size := 0
	for _, l := range lines {
		size += len(l.text) + 1
	}
	text := make([]byte, 0, size)
	for _, l := range lines {
		text = append(append(text, l.text...), '\n')
	}
	return text
}

// parseNumbers finds the number of each line. It returns which line is none,
// and -1 when all are.
func parseNumbers(lines []line) (bad int, err error) {
	for i := range lines {
		n, err := strconv.ParseInt(string(bytes.TrimSpace(lines[i].text)), 10, 64)
		if err != nil {
			return i, fmt.Errorf("%.40q is not a whole number of 64 bits", lines[i].text)
		}
		lines[i].number = n
	}
	return -1, nil
}

// merge merges sorted parts. Of equal lines, those of a part before come first.
func merge(parts [][]line, compare func(a, b line) int) []line {
	switch len(parts) {
	case 0:
		return nil
	case 1:
		return parts[0]
	}
	a, b := merge(parts[:len(parts)/2], compare), merge(parts[len(parts)/2:], compare)
	merged := make([]line, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compare(a[0], b[0]) <= 0 {
			merged, a = append(merged, a[0]), a[1:]
		} else {
			merged, b = append(merged, b[0]), b[1:]
		}
	}
	return append(append(merged, a...), b...)
}
