package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/p2pmpi/p2pmpi/filetransfer"
)

// Collected files come from volunteers, who choose their names and content. They go into a
// folder that has no other files, replace nothing, and get names that are harmless to type and
// to show.

// layOut writes the collected files, and tells the user where they are.
func (e *execution) layOut(ctx context.Context, manifests []filetransfer.Manifest) error {
	req := e.j.req
	dir, manifests := destination(req, e.j.spec.ID, manifests)
	files := 0
	for _, m := range manifests {
		if len(m) == 0 {
			continue
		}
		if files += len(m); dir != req.OutputDir || !req.NewFolder {
			if err := makeFolder(dir); err != nil {
				return err
			}
		}
		if err := e.j.s.cfg.Files.Store().MaterializeNew(ctx, m, dir); err != nil {
			return err
		}
	}
	if req.NewFolder && dir != req.OutputDir {
		e.j.warn(fmt.Sprintf("%d output files are in %s", files, filepath.Base(dir)))
	}
	return nil
}

// destination returns the folder that collected files go to, and the files with the names and
// permissions that they get there.
func destination(req Request, job string, manifests []filetransfer.Manifest) (string, []filetransfer.Manifest) {
	var out []filetransfer.Manifest
	for _, m := range manifests {
		out = append(out, harmless(m, req.Executable))
	}
	all := slices.Concat(manifests...)
	name := exactName(req.Outputs)
	switch {
	case len(all) == 0 || !req.NewFolder:
		return req.OutputDir, out
	case len(all) == 1 && name != "" && all[0].Path == name:
		one := slices.Concat(out...)
		one[0].Path = name // as the user wrote it
		return req.OutputDir, []filetransfer.Manifest{one}
	}
	return filepath.Join(req.OutputDir, fmt.Sprintf("results-%.8s", job)), out
}

// exactName returns the only pattern if it names exactly one file.
func exactName(patterns []string) string {
	if len(patterns) == 1 && !strings.ContainsAny(patterns[0], `*?[\`) {
		return patterns[0]
	}
	return ""
}

// makeFolder makes dir unless it exists.
func makeFolder(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		var info fs.FileInfo
		if info, err = os.Lstat(dir); err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a folder", dir)
		}
	}
	return err
}

// harmless returns the files of m under the names that harmlessName returns, without
// executable bits unless they are asked for.
func harmless(m filetransfer.Manifest, executable bool) filetransfer.Manifest {
	m = slices.Clone(m)
	for i := range m {
		names := strings.Split(m[i].Path, "/")
		for k := range names {
			names[k] = harmlessName(names[k])
		}
		m[i].Path = strings.Join(names, "/")
		if !executable {
			m[i].Mode &^= 0o111
		}
	}
	slices.SortFunc(m, func(a, b filetransfer.Entry) int { // a walk's order; no path has a NUL
		return cmp.Compare(strings.ReplaceAll(a.Path, "/", "\x00"), strings.ReplaceAll(b.Path, "/", "\x00"))
	})
	return m
}

// harmlessName replaces, by % and hexadecimal digits, what makes a name dangerous: control and
// format characters (which reverse text), line separators, backslashes, a leading dash, and the
// first letter of a name that Windows reserves. Different names stay different.
func harmlessName(name string) string {
	var b strings.Builder
	escape := func(s string) {
		for i := range len(s) {
			fmt.Fprintf(&b, "%%%02X", s[i])
		}
	}
	for i, r := range name {
		s := name[i : i+utf8.RuneLen(r)]
		switch {
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp), r == '\\',
			i == 0 && (r == '-' || reserved(name)), r == '%' && escaped(name[i:]):
			escape(s)
		default:
			b.WriteString(s)
		}
	}
	return b.String()
}

// escaped reports whether s begins as an escape of harmlessName does.
func escaped(s string) bool {
	const hex = "0123456789ABCDEF"
	return len(s) > 2 && strings.IndexByte(hex, s[1]) >= 0 && strings.IndexByte(hex, s[2]) >= 0
}

// reserved reports whether Windows takes name for a device.
func reserved(name string) bool {
	base, _, _ := strings.Cut(strings.ToUpper(name), ".")
	base = strings.TrimRight(base, " ")
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	port, ok := strings.CutPrefix(base, "COM")
	if !ok {
		port, ok = strings.CutPrefix(base, "LPT")
	}
	return ok && utf8.RuneCountInString(port) == 1 && strings.Contains("123456789¹²³", port)
}

// checkOutputDir reports, before the job starts or is resumed, what would keep its files from
// being written.
func checkOutputDir(req Request) error {
	if len(req.Outputs) == 0 {
		return nil
	}
	info, err := os.Stat(req.OutputDir)
	if !req.NewFolder && errors.Is(err, fs.ErrNotExist) { // it will be made
		info, err = os.Stat(filepath.Dir(req.OutputDir))
	}
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", req.OutputDir)
	}
	if err != nil {
		return fmt.Errorf("output folder: %w", err)
	}
	return nil
}

// checkUnused reports what is already where the files of a new job go: nothing is replaced.
func checkUnused(req Request) error {
	if len(req.Outputs) == 0 {
		return nil
	}
	if !req.NewFolder {
		files, err := os.ReadDir(req.OutputDir)
		if err == nil && len(files) > 0 {
			return fmt.Errorf("output folder %s is not empty: name a new one", req.OutputDir)
		}
		return nil
	}
	if name := exactName(req.Outputs); name != "" {
		// A folder of that name is no obstacle: its files would go into a new folder.
		info, err := os.Lstat(filepath.Join(req.OutputDir, filepath.FromSlash(name)))
		if err == nil && !info.IsDir() {
			return fmt.Errorf("-o %s: the file exists and is not replaced: remove it, or give --output-dir", name)
		}
	}
	return nil
}
