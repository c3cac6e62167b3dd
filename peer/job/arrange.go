package job

import (
	"path"
	"strconv"
	"strings"

	"github.com/p2pmpi/p2pmpi/filetransfer"
)

// arrange decides under which paths the files of all ranks go into one folder.
// What ranks have written alike is there once. Where they disagree, because
// their files of one name differ or the file of one is a folder of another's,
// the file of each rank goes into a folder rank<i> of its own. The manifests
// returned can be laid out one after the other.
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

// disputes tells of each path whether ranks disagree on it.
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

// freePrefix returns "rank", with as many hyphens as it takes for no rank to
// have written to a folder, or a file, of that name and a number.
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
			rank = -1 // look again
		}
	}
	return prefix
}
