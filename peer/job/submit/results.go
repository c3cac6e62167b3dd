package submit

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
// directory without other files, replace nothing, and get names that are safe to type and to
// display.

// layOut writes the collected files, and tells the user their directory.
func (c *collector) layOut(ctx context.Context, manifests []filetransfer.Manifest) error {
	req := c.j.req
	dir, manifests := destination(req, c.j.spec.ID, manifests)
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
		if err := c.j.s.cfg.Files.Store().MaterializeNew(ctx, m, dir); err != nil {
			return err
		}
	}
	if req.NewFolder && dir != req.OutputDir {
		c.j.warn(fmt.Sprintf("%d output files are in %s", files, filepath.Base(dir)))
	}
	return nil
}

// destination returns the directory of the collected files, and the files with their names and
// permissions there.
func destination(req Request, job string, manifests []filetransfer.Manifest) (string, []filetransfer.Manifest) {
	var out []filetransfer.Manifest
	for _, m := range manifests {
		out = append(out, sanitize(m, req.Executable))
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

// makeFolder makes the directory dir unless it exists.
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

// sanitize returns the files of m with the names that sanitizeName returns, and without executable
// bits unless executable is set.
func sanitize(m filetransfer.Manifest, executable bool) filetransfer.Manifest {
	m = slices.Clone(m)
	for i := range m {
		names := strings.Split(m[i].Path, "/")
		for k := range names {
			names[k] = sanitizeName(names[k])
		}
		m[i].Path = strings.Join(names, "/")
		if !executable {
			m[i].Mode &^= 0o111
		}
	}
	slices.SortFunc(m, func(a, b filetransfer.Entry) int { // the order of a directory walk; no path has a NUL
		return cmp.Compare(strings.ReplaceAll(a.Path, "/", "\x00"), strings.ReplaceAll(b.Path, "/", "\x00"))
	})
	return m
}

// sanitizeName replaces the dangerous characters of a name by % and hexadecimal digits. They are
// control and format characters (which can reverse text), line separators, backslashes, a leading
// dash, and the first letter of a name that Windows reserves. Different names stay different.
func sanitizeName(name string) string {
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

// escaped reports whether s begins with an escape sequence of sanitizeName.
func escaped(s string) bool {
	const hex = "0123456789ABCDEF"
	return len(s) > 2 && strings.IndexByte(hex, s[1]) >= 0 && strings.IndexByte(hex, s[2]) >= 0
}

// reserved reports whether Windows reserves name for a device.
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

// checkOutputDir returns an error, before the job starts or is resumed, if its files could not be
// written.
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

// checkUnused returns an error if files exist where those of a new job go, since no file is
// replaced.
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
		// A directory of that name is no obstacle: the files would go into a new directory.
		info, err := os.Lstat(filepath.Join(req.OutputDir, filepath.FromSlash(name)))
		if err == nil && !info.IsDir() {
			return fmt.Errorf("-o %s: the file exists and is not replaced: remove it, or give --output-dir", name)
		}
	}
	return nil
}
