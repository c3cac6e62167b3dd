package proclink

import (
	"slices"
	"testing"
)

func TestKindsRoundTrip(t *testing.T) {
	cases := map[string]struct {
		names []string
		want  []Kind // nil if the names are invalid
	}{
		"empty list":    {nil, Kinds},
		"one":           {[]string{"tcp"}, []Kind{TCP}},
		"order is kept": {[]string{"stream", "tcp"}, []Kind{Stream, TCP}},
		"unknown":       {[]string{"tcp", "udp"}, nil},
		"twice":         {[]string{"tcp", "tcp"}, nil},
		"empty name":    {[]string{""}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseKinds(c.names)
			if (err != nil) != (c.want == nil) || !slices.Equal(got, c.want) {
				t.Errorf("got %v, %v; want %v", got, err, c.want)
			}
		})
	}
}
