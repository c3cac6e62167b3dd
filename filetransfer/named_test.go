package filetransfer

import "testing"

func TestNamed(t *testing.T) {
	cases := []struct {
		pattern, file string
		want          bool
	}{
		{"a", "a", true}, {"a", "a/b/c", true}, {"a/*", "a/b/c", true}, {"*.out", "x.out", true},
		{"*.out", "d/x.out", false}, {"a/b", "a", false}, {"a", "b/a", false}, {"?", ".bashrc", false},
		{"*", ".bashrc", false}, {"*", "d/.bashrc", false}, {"*", "d/.git/hooks/x", false}, {"d/*", "d/.x", false},
		{".*", ".bashrc", true}, {`\.b*`, ".bashrc", true}, {".git", ".git/config", true}, {".git", ".git/.x", false},
		{"*/.x", "d/.x", true}, {"*/.x", ".d/.x", false}, {"[.]x", ".x", false}, {"d/?x", "d/.x", false},
	}
	for _, c := range cases {
		if got := Named([]string{"none", c.pattern}, c.file); got != c.want {
			t.Errorf("pattern %q, file %q: Named returned %v", c.pattern, c.file, got)
		}
		found := collection{patterns: []string{"none", c.pattern}, work: maxWork}
		if got, err := found.matches(c.file); got != c.want || err != nil {
			t.Errorf("pattern %q, file %q: the volunteer's matching returns %v, %v", c.pattern, c.file, got, err)
		}
	}
}
