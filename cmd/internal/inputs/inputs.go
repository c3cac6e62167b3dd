package inputs

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/filetransfer"
)

// maxLine bounds a line of a file list, in bytes. It is far above the length of the longest path.
const maxLine = 64 << 10

// List reads a file with one input per line: a file, a folder, or a URL. It ignores empty lines and lines
// that begin with #.
func List(name string) ([]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("file list %s: %w", name, command.Cause(err))
	}
	defer f.Close()
	var names []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line != "" && !strings.HasPrefix(line, "#") {
			names = append(names, line)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("file list %s: %w", name, command.Cause(err))
	}
	return names, nil
}

// Resolve determines where each of the named inputs is staged: files and folders, which are relative to the
// folder cwd, and URLs. An input that is named twice is staged once. The error lists the inputs that cannot be
// staged.
func Resolve(cwd string, names []string) ([]filetransfer.Source, []filetransfer.Download, error) {
	r := resolution{cwd: cwd, taken: make(map[string]string)}
	var errs []error
	for _, name := range names {
		add := r.addLocal
		if isURL(name) {
			add = r.addURL
		}
		if err := add(name); err != nil {
			errs = append(errs, err)
		}
	}
	return r.files, r.downloads, shorten(errs)
}

// A resolution is the result for the names processed so far.
type resolution struct {
	cwd       string
	files     []filetransfer.Source
	downloads []filetransfer.Download
	taken     map[string]string // staged path -> source
}

// take reserves a staged path for a source, and reports whether it is new.
func (r *resolution) take(staged, from string) (bool, error) {
	switch before, ok := r.taken[staged]; {
	case !ok && len(r.taken) == filetransfer.MaxEntries:
		return false, fmt.Errorf("more than %d input files", filetransfer.MaxEntries)
	case !ok:
		r.taken[staged] = from
		return true, nil
	case before != from:
		return false, fmt.Errorf("input files %s and %s would both be staged as %s", before, from, staged)
	}
	return false, nil
}

func (r *resolution) addURL(line string) error {
	d, err := parseURL(line)
	if err != nil {
		return err
	}
	added, err := r.take(d.Path, strings.TrimSpace(d.URL+" "+d.Digest))
	if added {
		r.downloads = append(r.downloads, d)
	}
	return err
}

func (r *resolution) addLocal(name string) error {
	from := filepath.Clean(name)
	staged := strings.TrimPrefix(from, string(filepath.Separator))
	if !filepath.IsAbs(from) {
		from = filepath.Join(r.cwd, from)
	}
	if !filepath.IsLocal(staged) {
		return fmt.Errorf("input file %s: outside the current folder; run p2prun from a folder above it, or use its absolute path", name)
	}
	info, err := os.Stat(from)
	switch {
	case err != nil:
	case info.IsDir():
		return r.addFolder(name, from, staged)
	default:
		err = readable(from, info)
	}
	if err != nil {
		return fmt.Errorf("input file %s: %w", name, command.Cause(err))
	}
	return r.addFile(from, staged)
}

func (r *resolution) addFile(from, staged string) error {
	staged = filepath.ToSlash(staged)
	added, err := r.take(staged, from)
	if added {
		r.files = append(r.files, filetransfer.Source{Path: staged, From: from})
	}
	return err
}

// readable checks that a file can be opened, so that all missing files are reported before any peer has to wait.
// It rejects pipes, which would block.
func readable(name string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return f.Close()
}

// maxReported bounds the number of inputs that a message names. The message only counts the others.
const maxReported = 5

func shorten(errs []error) error {
	if more := len(errs) - maxReported; more > 0 {
		errs = append(errs[:maxReported:maxReported], fmt.Errorf("further input files that cannot be staged: %d", more))
	}
	return errors.Join(errs...)
}
