package nemesis

import (
	"slices"
	"strings"
)

// Continued returns the combined output of two p2pruns of a job, where the second was started after
// the first was killed. The second repeats the output that the first had printed last and not
// recorded: together up to most lines at the end of the ranks' outputs. Continued removes these
// lines. If more lines are repeated, it leaves them for the check of the answer. It also removes an
// incomplete last line of the first.
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

// repeated returns the number of lines at the start of b that repeat the end of a. If b is shorter
// than that end, b may repeat only its beginning.
func repeated(a, b []string) int {
	for i := range a {
		if n := min(len(a)-i, len(b)); a[i] == b[0] && slices.Equal(a[i:i+n], b[:n]) {
			return n
		}
	}
	return 0
}

// ByRank groups lines by the rank that has printed them: "rank I ..." under I, all others under "".
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
