package job

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/filetransfer"
)

func TestFilesThatAreNotTheSameAreNamed(t *testing.T) {
	files := func(contents ...string) (m filetransfer.Manifest) {
		for i, c := range contents {
			m = append(m, filetransfer.Entry{Path: string(rune('a' + i)), Digest: filetransfer.DigestOf([]byte(c))})
		}
		return m
	}
	tests := []struct {
		name   string
		a, b   filetransfer.Manifest
		file   string
		unlike bool
	}{
		{"none", nil, nil, "", false},
		{"the same", files("1", "2"), files("1", "2"), "", false},
		{"another content", files("1", "2"), files("1", "3"), "b", true},
		{"one less", files("1", "2"), files("1"), "b", true},
		{"one more", files("1"), files("1", "2"), "b", true},
		{"another name", files("1", "2")[1:], files("1", "2")[:1], "b", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if file, unlike := unlikeFiles(tt.a, tt.b); file != tt.file || unlike != tt.unlike {
				t.Errorf("got %q, %v; want %q, %v", file, unlike, tt.file, tt.unlike)
			}
		})
	}
}
