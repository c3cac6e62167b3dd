package nemesis

import (
	"slices"
	"strings"
)

// Continued returns what two p2pruns of a job have printed in all, the second after the first
// was killed. What the first had printed last, and not noted, comes again: up to so many lines
// of the end of what each rank has printed. More than that is left as it is, for whoever checks
// the answer. A line that the first was killed in the middle of does not count.
func Continued(first, second string, most int) string {
	first = first[:strings.LastIndexByte(first, '\n')+1]
	before, after := ByRank(first), ByRank(second)
	again := make(map[string]int)
	for rank := range after {
		again[rank] = repeated(before[rank], after[rank])
		most -= again[rank]
	}
	if most < 0 {
		return first + second
	}
	var all strings.Builder
	all.WriteString(first)
	for line := range strings.Lines(second) {
		if rank := rankOf(line); again[rank] > 0 {
			again[rank]--
		} else {
			all.WriteString(line)
		}
	}
	return all.String()
}

// repeated returns with how many lines b repeats the end of a, or some of it.
func repeated(a, b []string) int {
	for i := range a {
		if n := min(len(a)-i, len(b)); a[i] == b[0] && slices.Equal(a[i:i+n], b[:n]) {
			return n
		}
	}
	return 0
}

// ByRank sorts lines by who has printed them: those "rank I ..." by I, all others are of "".
func ByRank(text string) map[string][]string {
	ranks := make(map[string][]string)
	for line := range strings.Lines(text) {
		ranks[rankOf(line)] = append(ranks[rankOf(line)], line)
	}
	return ranks
}

func rankOf(line string) string {
	words := strings.SplitN(line, " ", 3)
	if len(words) < 3 || words[0] != "rank" {
		return ""
	}
	return words[1]
}
