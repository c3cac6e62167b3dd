package submit

import (
	"path"
	"strconv"
	"strings"

	"github.com/p2pmpi/p2pmpi/filetransfer"
)

// arrange chooses the paths of all ranks' files in one directory. A file that several ranks have
// written identically appears once. Ranks may disagree on a path: their files differ, or the file
// of one rank is a directory of another. Then the file of each rank goes into a directory rank<i>.
// The returned manifests can be laid out one after the other.
func arrange(ranks []filetransfer.Manifest) []filetransfer.Manifest {
	disputed := disputes(ranks)
	prefix := freePrefix(ranks)
	var out []filetransfer.Manifest
	taken := make(map[string]bool)
	for rank, m := range ranks {
		var shared, own filetransfer.Manifest
		for _, f := range m {
			switch {
			case disputed(f.Path):
				f.Path = path.Join(prefix+strconv.Itoa(rank), f.Path)
				own = append(own, f)
			case !taken[f.Path]:
				taken[f.Path] = true
				shared = append(shared, f)
			}
		}
		out = append(out, shared, own)
	}
	return out
}

// disputes returns a function that reports whether ranks disagree on a path.
func disputes(ranks []filetransfer.Manifest) func(file string) bool {
	contents := make(map[string]filetransfer.Digest)
	differs, folder := make(map[string]bool), make(map[string]bool)
	for _, m := range ranks {
		for _, f := range m {
			if first, seen := contents[f.Path]; seen && first != f.Digest {
				differs[f.Path] = true
			}
			contents[f.Path] = f.Digest
			for d := path.Dir(f.Path); d != "." && !folder[d]; d = path.Dir(d) {
				folder[d] = true
			}
		}
	}
	return func(file string) bool { return differs[file] || folder[file] }
}

// freePrefix returns "rank", followed by hyphens if needed, so that no rank has written to a file
// or directory with that name and a number.
func freePrefix(ranks []filetransfer.Manifest) string {
	tops := make(map[string]bool)
	for _, m := range ranks {
		for _, f := range m {
			top, _, _ := strings.Cut(f.Path, "/")
			tops[top] = true
		}
	}
	prefix := "rank"
	for rank := 0; rank < len(ranks); rank++ {
		if tops[prefix+strconv.Itoa(rank)] {
			prefix += "-"
			rank = -1 // start over
		}
	}
	return prefix
}
