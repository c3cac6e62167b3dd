package inputs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/filetransfer"
)

// addFolder stages all files below a folder. It follows symbolic links only to targets inside the folder,
// because the user has named no other files.
func (r *resolution) addFolder(name, from, staged string) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return fmt.Errorf("input folder %s: %w", name, command.Cause(err))
	}
	defer root.Close()
	w := walk{resolution: r, root: root, from: from, staged: staged}
	if err := w.enter("."); err != nil {
		return fmt.Errorf("input folder %s: %w", name, err)
	}
	return nil
}

// A walk traverses one folder.
type walk struct {
	*resolution
	root         *os.Root
	from, staged string
	above        []fs.FileInfo // the current folder and those above it, outermost first
}

// enter stages the contents of the folder at, which is relative to root.
func (w *walk) enter(at string) error {
	info, err := w.root.Stat(at)
	if err != nil {
		return explain(at, err)
	}
	if len(w.above) == filetransfer.MaxPathDepth {
		return fmt.Errorf("%s: deeper than %d folders", at, filetransfer.MaxPathDepth)
	}
	for _, a := range w.above {
		if os.SameFile(a, info) {
			return fmt.Errorf("%s: a symbolic link to a folder that it is in", at)
		}
	}
	w.above = append(w.above, info)
	defer func() { w.above = w.above[:len(w.above)-1] }()
	entries, err := fs.ReadDir(w.root.FS(), at)
	if err != nil {
		return explain(at, err)
	}
	for _, e := range entries {
		if err := w.visit(path.Join(at, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) visit(at string) error {
	info, err := w.root.Stat(at)
	if err != nil {
		return explain(at, err)
	}
	if info.IsDir() {
		return w.enter(at)
	}
	local := filepath.FromSlash(at)
	if err := readable(filepath.Join(w.from, local), info); err != nil {
		return explain(at, err)
	}
	return w.addFile(filepath.Join(w.from, local), filepath.Join(w.staged, local))
}

// explain describes the problem with a name in a folder.
func explain(at string, err error) error {
	cause := command.Cause(err)
	if p, ok := errors.AsType[*fs.PathError](err); ok && p.Err.Error() == "path escapes from parent" {
		cause = errors.New("a symbolic link that leads out of the folder; name its target separately")
	}
	return fmt.Errorf("%s: %w", at, cause)
}
