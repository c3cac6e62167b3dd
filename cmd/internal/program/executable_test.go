package program

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// elfFile returns an executable that consists only of headers, needs a library, and has symbols that are
// all named MPI_Init.
func elfFile(machine elf.Machine, kind elf.Type, abi elf.OSABI, library string, symbols ...elf.Sym64) []byte {
	const header, section = 64, 64
	strings := "\x00" + library + "\x00MPI_Init\x00"
	dynamic := header + len(strings)
	table := dynamic + 32
	sections := table + (1+len(symbols))*elf.Sym64Size
	h := elf.Header64{
		Type: uint16(kind), Machine: uint16(machine), Version: 1, Shoff: uint64(sections),
		Ehsize: header, Shentsize: section, Shnum: 4, Shstrndx: 1,
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)
	h.Ident[elf.EI_VERSION], h.Ident[elf.EI_OSABI] = 1, byte(abi)
	for i := range symbols {
		symbols[i].Name = uint32(len(library) + 2)
	}
	var b bytes.Buffer
	for _, part := range []any{
		h, []byte(strings),
		elf.Dyn64{Tag: int64(elf.DT_NEEDED), Val: 1}, elf.Dyn64{},
		elf.Sym64{}, symbols,
		elf.Section64{},
		elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: header, Size: uint64(len(strings))},
		elf.Section64{Type: uint32(elf.SHT_DYNAMIC), Off: uint64(dynamic), Size: 32, Link: 1, Entsize: 16},
		elf.Section64{Type: uint32(elf.SHT_SYMTAB), Off: uint64(table), Size: uint64((1 + len(symbols)) * elf.Sym64Size), Link: 1, Entsize: elf.Sym64Size},
	} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

// mpiInit returns a symbol MPI_Init, of section 1 or undefined.
func mpiInit(bind elf.SymBind, defined bool) elf.Sym64 {
	s := elf.Sym64{Info: elf.ST_INFO(bind, elf.STT_FUNC)}
	if defined {
		s.Shndx = 1
	}
	return s
}

func TestExecutablesThatCannotRun(t *testing.T) {
	good := elfFile(elf.EM_X86_64, elf.ET_EXEC, elf.ELFOSABI_NONE, "libc.so.6")
	tests := map[string]struct {
		content []byte
		want    string
	}{
		"good":              {good, ""},
		"32 bits":           {elfFile(elf.EM_386, elf.ET_EXEC, elf.ELFOSABI_NONE, "libc.so.6"), "an executable for linux/386"},
		"Open MPI":          {elfFile(elf.EM_X86_64, elf.ET_DYN, elf.ELFOSABI_NONE, "libmpi.so.40"), "another MPI (needs libmpi.so.40)"},
		"MPICH":             {elfFile(elf.EM_X86_64, elf.ET_DYN, elf.ELFOSABI_LINUX, "libmpich.so.12"), "another MPI"},
		"Fortran":           {elfFile(elf.EM_X86_64, elf.ET_DYN, elf.ELFOSABI_NONE, "libmpi_usempif08.so.40"), "another MPI"},
		"MPIR":              {elfFile(elf.EM_X86_64, elf.ET_DYN, elf.ELFOSABI_NONE, "libmpir.so.23"), ""},
		"linked statically": {elfFile(elf.EM_X86_64, elf.ET_EXEC, elf.ELFOSABI_NONE, "", mpiInit(elf.STB_GLOBAL, true)), "another MPI (calls MPI_Init)"},
		"a weak definition": {elfFile(elf.EM_X86_64, elf.ET_EXEC, elf.ELFOSABI_NONE, "", mpiInit(elf.STB_WEAK, true)), "another MPI (calls MPI_Init)"},
		"unusual library":   {elfFile(elf.EM_X86_64, elf.ET_DYN, elf.ELFOSABI_NONE, "libmysolver.so", mpiInit(elf.STB_GLOBAL, false)), "another MPI (calls MPI_Init)"},
		"weak MPI symbol":   {elfFile(elf.EM_X86_64, elf.ET_DYN, elf.ELFOSABI_NONE, "libc.so.6", mpiInit(elf.STB_WEAK, false)), ""},
		"another processor": {elfFile(elf.EM_AARCH64, elf.ET_EXEC, elf.ELFOSABI_NONE, ""), "an executable for linux/arm64"},
		"unknown processor": {elfFile(elf.EM_VAX, elf.ET_EXEC, elf.ELFOSABI_NONE, ""), "unknown(75)"},
		"another system":    {elfFile(elf.EM_X86_64, elf.ET_EXEC, elf.ELFOSABI_FREEBSD, ""), "an executable for freebsd/amd64"},
		"not linked":        {elfFile(elf.EM_X86_64, elf.ET_REL, elf.ELFOSABI_NONE, ""), "not an executable"},
		"cut off":           {good[:len(good)-60], "a damaged ELF executable"},
		"Mach-O":            {append([]byte("\xcf\xfa\xed\xfe\x0c\x00\x00\x01"), make([]byte, 40)...), "an executable for darwin/arm64"},
		"Mach-O for both":   {[]byte("\xca\xfe\xba\xbe\x00\x00\x00\x02"), "an executable for darwin/amd64"},
		"Windows, cut off":  {[]byte("MZ\x90\x00"), "a damaged Windows executable"},
		"script":            {[]byte("#!/bin/sh\n"), ""},
		"nothing":           {nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := checkExecutable(bytes.NewReader(test.content), test.content[:min(8, len(test.content))], submit.Platform{OS: "linux", Arch: "amd64"})
			if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// module returns a module that imports a function without parameters and defines one with the given body.
func module(from, name, body string) string {
	section := func(id byte, content string) string { return string([]byte{id, byte(len(content))}) + content }
	text := func(s string) string { return string([]byte{byte(len(s))}) + s }
	imports := ""
	if from != "" {
		imports = section(2, "\x01"+text(from)+text(name)+"\x00\x00")
	}
	return "\x00asm\x01\x00\x00\x00" + section(1, "\x01\x60\x00\x00") + imports + section(3, "\x01\x00") +
		section(10, "\x01"+text("\x00"+body))
}

// TestModulesThatCannotRun checks that each module is rejected before any peer is asked, with a message of one
// line.
func TestModulesThatCannotRun(t *testing.T) {
	const header, damaged = "\x00asm\x01\x00\x00\x00", "a WebAssembly module that is damaged"
	good := module("", "", "\x0b")
	for name, test := range map[string]struct{ content, want string }{
		"no section":         {header, ""},
		"good":               {good, ""},
		"cut off":            {good[:len(good)-1], damaged},
		"unknown section":    {header + "\x0e\x00", damaged},
		"out of order":       {header + "\x02\x01\x00\x01\x01\x00", damaged},
		"code":               {module("", "", "\x6a\x0b"), damaged}, // adds two numbers that do not exist
		"unknown code":       {module("", "", "\xff\x0b"), damaged},
		"for JavaScript":     {module("gojs", "runtime.wasmExit", "\x0b"), "for JavaScript (GOOS=js)"},
		"for old JavaScript": {module("go", "debug", "\x0b"), "for JavaScript (GOOS=js)"},
		"another host":       {module("env", "emscripten\x1b[2J", "\x0b"), `imports the function "emscripten\x1b[2J" of "env"`},
		"own host":           {module("p2pmpi_1", "fail", "\x0b"), ""},
		"unknown to WASI":    {module("wasi_snapshot_preview1", "fork", "\x0b"), `imports the function "fork"`},
		"other parameters":   {module("wasi_snapshot_preview1", "fd_write", "\x0b"), `imports the function "fd_write"`},
		"imported memory":    {header + "\x02\x0c\x01\x03env\x03mem\x02\x00\x01", `imports the memory "mem" of "env"`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x.wasm")
			if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Find(t.Context(), file)
			if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
