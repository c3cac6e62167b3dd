package sandbox

import (
	"slices"
	"testing"
)

func TestLacks(t *testing.T) {
	cases := map[string]struct {
		means Means
		want  []Wall
	}{
		"all":            {Means{Namespaces: true, Landlock: true, Seccomp: true}, nil},
		"no Landlock":    {Means{Namespaces: true, Seccomp: true}, nil},
		"no namespaces":  {Means{Landlock: true, Seccomp: true}, []Wall{FileSystem, Processes}},
		"no seccomp":     {Means{Namespaces: true, Landlock: true}, []Wall{Network}},
		"only Landlock":  {Means{Landlock: true}, []Wall{FileSystem, Network, Processes}},
		"nothing at all": {Means{}, []Wall{FileSystem, Network, Processes}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []Wall
			for _, lack := range (Report{Means: c.means, LandlockVersion: 9}).Lacks() {
				got = append(got, lack.Wall)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
