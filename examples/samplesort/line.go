package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
)

// A line is a line of text with its sort keys.
type line struct {
	text   []byte // without the newline
	number int64  // value of the line, if integers are sorted
	at     int64  // position in the file, so that two lines are never equal
}

// compare orders lines by number or by text, depending on o, and equal lines by their position in
// the file.
func (o options) compare(a, b line) int {
	if o.integers {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.at, b.at))
	}
	return cmp.Or(bytes.Compare(a.text, b.text), cmp.Compare(a.at, b.at))
}

// split splits text, which begins at the given position of the file, into lines.
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

// join is the inverse of split: it returns the text of lines, each with a newline.
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

// parseNumbers parses the number of each line. It returns the index of the first line without a
// number, or -1.
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

// merge merges sorted parts. Equal lines are in the order of the parts.
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
