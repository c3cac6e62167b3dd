package sandbox

import (
	"slices"
	"testing"
)

func TestGaps(t *testing.T) {
	cases := map[string]struct {
		means Means
		want  []Resource
	}{
		"all":            {Means{Namespaces: true, Landlock: true, Seccomp: true}, nil},
		"no Landlock":    {Means{Namespaces: true, Seccomp: true}, nil},
		"no namespaces":  {Means{Landlock: true, Seccomp: true}, []Resource{FileSystem, Processes}},
		"no seccomp":     {Means{Namespaces: true, Landlock: true}, []Resource{Network}},
		"only Landlock":  {Means{Landlock: true}, []Resource{FileSystem, Network, Processes}},
		"nothing at all": {Means{}, []Resource{FileSystem, Network, Processes}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []Resource
			for _, gap := range (Report{Means: c.means, LandlockVersion: 9}).Gaps() {
				got = append(got, gap.Resource)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
