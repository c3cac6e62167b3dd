package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/p2pmpi/p2pmpi/internal/walk"
)

// Bounds of Match. Patterns come from the submitter, and the folder was filled
// by its program.
const (
	MaxPatterns = 256
	maxWalk     = 1_000_000 // names looked at
	maxWork     = 1 << 35   // bytes of patterns times bytes of names: about a minute of a processor at the worst
)

// Match returns the regular files below dir that any of the patterns names,
// for Build and Serve: the -o option of p2prun. A pattern is a shell glob
// (path.Match) relative to dir in which "*" does not match "/": "*.out" takes
// files at the top only, "out/*.txt" those in out. A pattern that names a
// folder takes everything below it. A leading dot is matched only by a pattern that
// has it at the same level. Control characters and bytes that are not UTF-8, which no manifest may have,
// are matched and named as % and hexadecimal digits. Symbolic links are ignored, as are pipes,
// sockets and devices. Folders that may not be looked into are given permissions.
//
// Call it once the job's processes are gone: a process that still runs could
// exchange what was matched for something else before it is read, though for
// nothing outside of dir.
func Match(ctx context.Context, dir string, patterns []string) ([]Source, error) {
	if err := validPatterns(patterns); err != nil {
		return nil, err
	}
	c := collection{ctx: ctx, dir: dir, patterns: patterns, work: maxWork}
	if err := walk.Walk(dir, c.visit); err != nil {
		return nil, fmt.Errorf("match files in %q: %w", dir, err)
	}
	return c.found, nil
}

func validPatterns(patterns []string) error {
	if len(patterns) > MaxPatterns {
		return fmt.Errorf("match files: %d patterns, at most %d are taken", len(patterns), MaxPatterns)
	}
	for _, p := range patterns {
		if err := validPath(p); err != nil {
			return fmt.Errorf("match files: pattern: %w", err)
		}
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("match files: pattern %q: %w", p, err)
		}
	}
	return nil
}

// A collection is one walk of Match.
type collection struct {
	ctx      context.Context
	dir      string
	patterns []string
	visited  int
	work     int64 // that may still be done
	found    []Source
	bytes    int // of their paths
}

func (c *collection) visit(e *walk.Entry) error {
	if c.visited++; c.visited > maxWalk {
		return fmt.Errorf("more than %d names", maxWalk)
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	switch {
	case !e.IsFolder() && !e.IsRegular():
		return nil
	case e.Depth() > MaxPathDepth && !e.IsFolder():
		return fmt.Errorf("a file that matches is in more than %d folders", MaxPathDepth-1)
	case e.IsFolder() && e.Depth() != MaxPathDepth:
		return nil
	}
	from := e.Path()
	name := transferable(from)
	named, err := c.matches(name)
	switch {
	case err != nil:
		return err
	case e.IsFolder() && !named:
		return fs.SkipDir
	case e.IsFolder() || !named:
		return nil
	}
	if c.bytes += len(name); len(c.found) == MaxEntries || c.bytes > MaxManifestBytes {
		return fmt.Errorf("more than %d files match, or their paths have more than %d bytes", MaxEntries, MaxManifestBytes)
	}
	c.found = append(c.found, Source{Path: name, From: from, Within: c.dir})
	return nil
}

// transferable returns a path without what validPath refuses: a single odd name must not keep the others from being
// collected.
func transferable(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		r, size := utf8.DecodeRuneInString(name)
		if r == utf8.RuneError && size == 1 || unicode.IsControl(r) {
			for i := range size {
				fmt.Fprintf(&b, "%%%02X", name[i])
			}
		} else {
			b.WriteString(name[:size])
		}
		name = name[size:]
	}
	return b.String()
}

// errWork is of patterns that would be compared with names for hours.
var errWork = errors.New("there are too many names for so many patterns of that length: name fewer, or folders")

// matches reports whether a pattern names the file or a folder that it is in. Its error is errWork.
func (c *collection) matches(name string) (bool, error) {
	for _, p := range c.patterns {
		part := ancestor(name, strings.Count(p, "/")+1)
		if c.work -= int64(len(p)+1) * int64(len(part)+1); c.work < 0 {
			return false, errWork
		}
		if ok, _ := path.Match(p, part); ok && hiddenNamed(p, name) {
			return true, nil
		}
	}
	return false, nil
}

// Named reports whether one of the patterns names the file or a folder that contains it, as
// Match does.
func Named(patterns []string, file string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(p, ancestor(file, strings.Count(p, "/")+1)); ok && hiddenNamed(p, file) {
			return true
		}
	}
	return false
}

// hiddenNamed reports whether the pattern has a leading dot at every level at which the file's
// path has one. A volunteer must not add hidden files to what "*" or a folder's name collects.
func hiddenNamed(pattern, file string) bool {
	levels := strings.Split(pattern, "/")
	level := 0
	for name := range strings.SplitSeq(file, "/") {
		if strings.HasPrefix(name, ".") &&
			(level >= len(levels) || !strings.HasPrefix(strings.TrimPrefix(levels[level], `\`), ".")) {
			return false
		}
		level++
	}
	return true
}

// ancestor returns the first depth names of a path, or all of a shorter one.
func ancestor(name string, depth int) string {
	for i := range len(name) {
		if name[i] == '/' {
			if depth--; depth == 0 {
				return name[:i]
			}
		}
	}
	return name
}
