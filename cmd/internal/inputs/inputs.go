package inputs

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/filetransfer"
)

// maxLine bounds a line of a file list: the longest path, and some.
const maxLine = 64 << 10

// List reads a file that names one input file a line. Empty lines and lines
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

// Sources says where each of the named files, relative to the folder cwd, is
// staged. A file that is named twice is staged once. Every file that cannot be
// read is reported.
func Sources(cwd string, names []string) ([]filetransfer.Source, error) {
	var sources []filetransfer.Source
	var errs []error
	taken := make(map[string]string) // staged path -> local path
	for _, name := range names {
		s, err := source(cwd, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		switch from, ok := taken[s.Path]; {
		case !ok:
			taken[s.Path] = s.From
			sources = append(sources, s)
		case from != s.From:
			errs = append(errs, fmt.Errorf("input files %s and %s would both be staged as %s", from, s.From, s.Path))
		}
	}
	return sources, shorten(errs)
}

func source(cwd, name string) (filetransfer.Source, error) {
	from := filepath.Clean(name)
	staged := strings.TrimPrefix(from, string(filepath.Separator))
	if !filepath.IsAbs(from) {
		from = filepath.Join(cwd, from)
	}
	if !filepath.IsLocal(staged) || staged == "." {
		return filetransfer.Source{}, fmt.Errorf("input file %s: outside the current folder; run p2prun from a folder above it, or use its absolute path", name)
	}
	if err := readable(from); err != nil {
		return filetransfer.Source{}, fmt.Errorf("input file %s: %w", name, err)
	}
	return filetransfer.Source{Path: filepath.ToSlash(staged), From: from}, nil
}

// readable opens a file for a moment: better to hear of all that is missing
// now than of one when peers are waiting.
func readable(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return command.Cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return command.Cause(err)
	case info.IsDir():
		return errors.New("it is a folder; name the files in it")
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	}
	return nil
}

// maxReported is how many files a message names before it only counts.
const maxReported = 5

func shorten(errs []error) error {
	if more := len(errs) - maxReported; more > 0 {
		errs = append(errs[:maxReported:maxReported], fmt.Errorf("and %d more input files that cannot be staged", more))
	}
	return errors.Join(errs...)
}
