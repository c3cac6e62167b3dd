package main

import (
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// reference counts words with an independent method.
func reference(text string) (map[string]int64, int64) {
	words := regexp.MustCompile(`[\pL\pN_]+`).FindAllString(text, -1)
	counts := make(map[string]int64)
	for _, w := range words {
		counts[w]++
	}
	return counts, int64(len(words))
}

// counts returns t as a plain map.
func (t tally) counts() map[string]int64 {
	counts := make(map[string]int64)
	for word, n := range t {
		counts[word] = *n
	}
	return counts
}

func TestWords(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", nil},
		{"no word", " \n.,;\x00\x01", nil},
		{"one", "word", []string{"word"}},
		{"case counts", "The the", []string{"The", "the"}},
		{"numbers and underscores", "x_1 2³ ½", []string{"x_1", "2³", "½"}},
		{"hyphen and apostrophe separate", "don't re-do", []string{"don", "t", "re", "do"}},
		{"letters of several scripts", "naïve Ωμέγα 中文，字", []string{"naïve", "Ωμέγα", "中文", "字"}},
		{"no UTF-8 separates", "a\xffb\xe4\xb8c", []string{"a", "b", "c"}},
		{"character truncated by the end", "a\xe4\xb8", []string{"a"}},
		{"surrogate and overlong forms", "a\xed\xa0\x80b\xc0\x80c", []string{"a", "b", "c"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := make(tally)
			n, err := got.read(strings.NewReader(tc.text), nil)
			want := make(map[string]int64)
			for _, w := range tc.want {
				want[w]++
			}
			if err != nil || n != int64(len(tc.want)) || !maps.Equal(got.counts(), want) {
				t.Errorf("%d words %v, %v; want %v", n, got.counts(), err, want)
			}
		})
	}
}

// TestWordLongerThanTheBuffer checks that a word that is longer than the buffer counts as one word.
func TestWordLongerThanTheBuffer(t *testing.T) {
	long := strings.Repeat("字a", 100_000)
	got := make(tally)
	n, err := got.read(strings.NewReader("x "+long+" x"), make([]byte, 1<<10))
	if err != nil || n != 3 || !maps.Equal(got.counts(), map[string]int64{"x": 2, long: 1}) {
		t.Errorf("%d words, %v", n, err)
	}
}

func TestSortedPutsFrequentWordsFirst(t *testing.T) {
	counted := make(tally)
	for _, e := range []entry{{"b", 2}, {"c", 2}, {"a", 1}, {"d", 9}, {"c", 1}} {
		counted.merge(e)
	}
	want := []entry{{"d", 9}, {"c", 3}, {"b", 2}, {"a", 1}}
	if got := counted.sorted(byCount); !slices.Equal(got, want) {
		t.Errorf("the sorted words are %v, want %v", got, want)
	}
}

// FuzzWords compares the counts with those of a regular expression, for arbitrary bytes and
// divisions into reads.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{"", "a b", "naïve 中文", "\xff\x00a\xe4\xb8", "_1½ \u0300e\u0301", "\xed\xa0\x80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, wantWords := reference(text)
		for name, r := range map[string]io.Reader{
			"whole":        strings.NewReader(text),
			"byte by byte": iotest.OneByteReader(strings.NewReader(text)),
		} {
			got := make(tally)
			n, err := got.read(r, nil)
			if err != nil || n != wantWords || !maps.Equal(got.counts(), want) {
				t.Errorf("%s: %q has %d words %v, %v; want %d %v", name, text, n, got.counts(), err, wantWords, want)
			}
		}
	})
}
