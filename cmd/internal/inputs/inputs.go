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

// maxLine bounds a line of a file list: the longest path, and some.
const maxLine = 64 << 10

// List reads a file that names one input a line: a file, a folder, or a URL. Empty lines and lines
// that begin with # are passed over.
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

// Resolve says where each of the named inputs, files and folders relative to the folder cwd
// and URLs, is staged. One that is named twice is staged once. Every input that cannot be
// staged is reported.
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

// A resolution is what names have come to so far.
type resolution struct {
	cwd       string
	files     []filetransfer.Source
	downloads []filetransfer.Download
	taken     map[string]string // staged path -> where it comes from
}

// take takes a staged path, and reports whether it is new.
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

// readable opens a file for a moment: better to hear of all that is missing
// now than of one when peers are waiting. A pipe would wait for its writer.
func readable(name string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return f.Close()
}

// maxReported is how many inputs a message names before it only counts.
const maxReported = 5

func shorten(errs []error) error {
	if more := len(errs) - maxReported; more > 0 {
		errs = append(errs[:maxReported:maxReported], fmt.Errorf("and %d more input files that cannot be staged", more))
	}
	return errors.Join(errs...)
}
