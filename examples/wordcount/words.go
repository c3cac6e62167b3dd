package main

import (
	"bufio"
	"cmp"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An entry is a word and its number of occurrences.
type entry struct {
	Word  string
	Count int64
}

// A tally counts words. It contains pointers so that counting a known word allocates no memory.
type tally map[string]*int64

func (t tally) add(word []byte) {
	if count := t[string(word)]; count != nil {
		*count++
		return
	}
	t.merge(entry{string(word), 1})
}

// merge adds the count of e to t.
func (t tally) merge(e entry) {
	if count := t[e.Word]; count != nil {
		*count += e.Count
		return
	}
	t[e.Word] = &e.Count
}

// sorted returns the entries of t in the given order. Sorting is necessary because maps have no
// fixed order, and replicas of a rank must send the same bytes.
func (t tally) sorted(order func(a, b entry) int) []entry {
	entries := make([]entry, 0, len(t))
	for word, count := range t {
		entries = append(entries, entry{word, *count})
	}
	slices.SortFunc(entries, order)
	return entries
}

// byWord orders words by their bytes.
func byWord(a, b entry) int { return strings.Compare(a.Word, b.Word) }

// byCount orders words by descending count, and words of equal count by their bytes.
func byCount(a, b entry) int { return cmp.Or(cmp.Compare(b.Count, a.Count), byWord(a, b)) }

// read counts the words of r, which may contain any bytes, and returns their number. buf is working
// memory that may be reused.
func (t tally) read(r io.Reader, buf []byte) (words int64, err error) {
	s := bufio.NewScanner(r)
	s.Buffer(buf, math.MaxInt) // a word may be as long as the file
	s.Split(splitWord)
	for s.Scan() {
		t.add(s.Bytes())
		words++
	}
	return words, s.Err()
}

// splitWord is a bufio.SplitFunc for words: maximal sequences of letters, numbers and underscores.
// Invalid UTF-8 ends a word as a space does.
func splitWord(data []byte, atEOF bool) (advance int, word []byte, err error) {
	start, end := 0, 0 // data[start:end] is the word so far
	for end < len(data) {
		if !atEOF && data[end] >= utf8.RuneSelf && !utf8.FullRune(data[end:]) {
			return start, nil, nil // the rest of the character is in the next data
		}
		in, size := inWord(data[end:])
		switch {
		case in:
			end += size
		case start < end:
			return end, data[start:end], nil
		default:
			end += size
			start = end
		}
	}
	if atEOF && start < end {
		return end, data[start:end], nil
	}
	return start, nil, nil
}

// inWord reports whether data starts with a character of a word, and returns the length of the
// character in bytes.
func inWord(data []byte) (in bool, size int) {
	if b := data[0]; b < utf8.RuneSelf {
		return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '_', 1
	}
	r, size := utf8.DecodeRune(data)
	return unicode.IsLetter(r) || unicode.IsNumber(r), size
}
