package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/p2pmpi/p2pmpi/internal/walk"
)

// Bounds of Match. The submitter chooses the patterns, and its program the files in the folder.
const (
	MaxPatterns = 256
	maxWalk     = 1_000_000 // directory entries visited
	maxWork     = 1 << 35   // bytes of patterns times bytes of names: about a minute of processor time at worst
)

// Match returns the regular files below dir that any of the patterns matches, for Build and Serve. It
// implements the -o option of p2prun. A pattern is a shell glob (path.Match) relative to dir in which "*"
// does not match "/": "*.out" matches files at the top only, "out/*.txt" those in out. A pattern that
// matches a folder includes everything below it. A leading dot is matched only by a pattern with a dot at
// the same level.
//
// A manifest may not contain control characters or invalid UTF-8. Match replaces each such byte in a path
// by % and hexadecimal digits before it compares and returns the path. It ignores symbolic links, pipes,
// sockets and devices. It adds permissions to folders that cannot be read.
//
// Call Match after the job's processes have ended. A running process could replace a matched file before
// it is read, although only by another file inside dir.
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
		return fmt.Errorf("match files: %d patterns, at most %d are allowed", len(patterns), MaxPatterns)
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

// A collection is the state of one Match.
type collection struct {
	ctx      context.Context
	dir      string
	patterns []string
	visited  int
	work     int64 // remaining part of maxWork
	found    []Source
	bytes    int // total length of their paths
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
		return fmt.Errorf("a matching file is in more than %d nested folders", MaxPathDepth-1)
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
	if c.bytes += len(name); len(c.found) == MaxEntries || c.bytes > maxManifestBytes {
		return fmt.Errorf("more than %d files match, or their paths have more than %d bytes", MaxEntries, maxManifestBytes)
	}
	c.found = append(c.found, Source{Path: name, From: from, Within: c.dir})
	return nil
}

// transferable escapes the characters of a path that validPath rejects, so that one odd name does not
// keep the other files from being collected.
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

// errTooMuchWork reports that comparing the patterns with the names would take too long.
var errTooMuchWork = errors.New("too many files for so many long patterns: use fewer patterns, or name directories")

// matches reports whether a pattern matches the file or a folder that contains it. Its only error is
// errTooMuchWork.
func (c *collection) matches(name string) (bool, error) {
	for _, p := range c.patterns {
		part := ancestor(name, strings.Count(p, "/")+1)
		if c.work -= int64(len(p)+1) * int64(len(part)+1); c.work < 0 {
			return false, errTooMuchWork
		}
		if ok, _ := path.Match(p, part); ok && hiddenNamed(p, name) {
			return true, nil
		}
	}
	return false, nil
}

// Named reports whether one of the patterns matches the file or a folder that contains it, as in Match.
func Named(patterns []string, file string) bool {
	c := collection{patterns: patterns, work: math.MaxInt64}
	named, _ := c.matches(file)
	return named
}

// hiddenNamed reports whether the pattern has a leading dot at every level at which the file's path has
// one. So a volunteer cannot add hidden files to those that "*" or a folder's name collects.
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

// ancestor returns the first depth names of a path, or the whole path if it is shorter.
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
