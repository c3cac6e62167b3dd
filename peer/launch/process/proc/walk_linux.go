package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// eachOpen calls look with a link to each file that a process has open.
func eachOpen(proc string, look func(link string)) error {
	folder, err := os.Open(filepath.Join(proc, "fd"))
	if err != nil {
		return err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	for _, name := range names {
		look(filepath.Join(proc, "fd", name))
	}
	return err
}

// eachMapping calls look with each memory mapping of a process.
func eachMapping(proc string, look func(mapping)) error {
	maps, err := os.ReadFile(filepath.Join(proc, "maps"))
	if err != nil {
		return err
	}
	for line := range bytes.Lines(maps) {
		look(readMapping(line))
	}
	return nil
}

// A mapping is a part of a file, or of anonymous memory, in the address space of a process.
type mapping struct {
	at     []byte // address range, from-to
	offset uint64 // offset in the file, in bytes
	file   file
	name   []byte // name by which the file was opened; a process can choose the name of anonymous memory (PR_SET_VMA_ANON_NAME)
}

// readMapping reads a line of /proc/PID/maps:
//
//	from-to rwxp offset major:minor inode      name
func readMapping(line []byte) mapping {
	var fields [5][]byte
	for i := range fields {
		fields[i], line, _ = bytes.Cut(line, []byte(" "))
	}
	offset, _ := strconv.ParseUint(string(fields[2]), 16, 64)
	number, _ := strconv.ParseUint(string(fields[4]), 10, 64)
	return mapping{fields[0], offset, file{device(string(fields[3])), number}, bytes.Trim(line, " \n")}
}

// deleted reports whether the file was deleted under the name by which it was opened.
func (m mapping) deleted() bool { return bytes.HasSuffix(m.name, []byte(" (deleted)")) }

// link returns a link to the mapped file; following it may need privileges.
func (m mapping) link(proc string) string {
	return filepath.Join(proc, "map_files", span(string(m.at)))
}

// length returns the number of mapped bytes.
func (m mapping) length() uint64 {
	from, to, _ := strings.Cut(string(m.at), "-")
	a, _ := strconv.ParseUint(from, 16, 64)
	b, _ := strconv.ParseUint(to, 16, 64)
	return b - a
}

// device parses a device number as /proc/PID/maps writes it.
func device(text string) uint64 {
	major, minor, _ := strings.Cut(text, ":")
	a, _ := strconv.ParseUint(major, 16, 32)
	b, _ := strconv.ParseUint(minor, 16, 32)
	return unix.Mkdev(uint32(a), uint32(b))
}

// span returns the name of a mapping in map_files, whose addresses have no leading zeros.
func span(text string) string {
	from, to, _ := strings.Cut(text, "-")
	trim := func(s string) string { return strings.TrimLeft(s[:len(s)-1], "0") + s[len(s)-1:] }
	if from == "" || to == "" {
		return text
	}
	return trim(from) + "-" + trim(to)
}
