// Package spelling finds the name that the user of a mistyped name probably meant.
package spelling

import "strings"

// Nearest returns the name that is nearest to typed, or "" if no name is near. If names begin with typed, the nearest
// is the shortest of them. Otherwise it is the one with the fewest mistakes: at most one for a short typed name and two
// for a longer one. Nearest ignores case. Of several equally near names it returns the first.
func Nearest(typed string, names []string) string {
	most := 1
	if len(typed) >= 5 {
		most = 2
	}
	if len(typed) < 3 || len(typed) > maxLength {
		return ""
	}
	typed = strings.ToLower(typed)
	nearest, least := completion(typed, names), most+1
	if nearest != "" {
		return nearest
	}
	for _, name := range names {
		if d := distance(typed, strings.ToLower(name)); d < least {
			nearest, least = name, d
		}
	}
	return nearest
}

// completion returns the shortest name that begins with typed, which is in lower case, or "".
func completion(typed string, names []string) (shortest string) {
	for _, name := range names {
		if strings.HasPrefix(strings.ToLower(name), typed) && (shortest == "" || len(name) < len(shortest)) {
			shortest = name
		}
	}
	return shortest
}

// maxLength bounds, in bytes, the names that are compared.
const maxLength = 100

// distance counts the mistakes that turn a into b: a letter omitted, added or replaced, or two adjacent
// letters swapped.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range b {
		rows[0][j+1] = j + 1
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			d := min(replaced, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
