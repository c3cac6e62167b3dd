package filetransfer

import (
	"slices"
	"testing"
)

func TestT4EvictionRemovesTheLeastRecentlyUsed(t *testing.T) {
	a, b, c := Digest{'a'}, Digest{'b'}, Digest{'c'}
	all := []candidate{{c, 30, 3}, {a, 10, 1}, {b, 20, 2}}
	tests := []struct {
		name   string
		excess int64
		want   []Digest
		ok     bool
	}{
		{"enough room", 0, nil, true},
		{"room to spare", -5, nil, true},
		{"oldest suffices", 10, []Digest{a}, true},
		{"one byte more", 11, []Digest{a, b}, true},
		{"all", 60, []Digest{a, b, c}, true},
		{"never enough", 61, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := chooseEvictions(slices.Clone(all), tt.excess)
			if !slices.Equal(got, tt.want) || ok != tt.ok {
				t.Errorf("got %v %v, want %v %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}
