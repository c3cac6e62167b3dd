package program

import (
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// An image is the information in the headers of an executable.
type image struct {
	of        submit.Platform
	libraries []string // required shared libraries
	function  string   // defined or imported MPI function, or "" if none was found
}

// checkExecutable returns an error if an executable cannot run on peers of this machine's platform,
// before any peer is asked. It accepts files of other kinds. A peer's sandbox allows the system calls
// of one processor architecture only, so programs for its predecessor (386 on amd64) do not run either.
func checkExecutable(f io.ReaderAt, start []byte, local submit.Platform) error {
	if len(start) < 4 {
		return nil
	}
	var x image
	var err error
	switch little, big := binary.LittleEndian.Uint32(start), binary.BigEndian.Uint32(start); {
	case string(start[:4]) == elf.ELFMAG:
		x, err = readELF(f)
	case little == macho.Magic32 || little == macho.Magic64:
		x, err = readMachO(f)
	case big == macho.MagicFat:
		x.of = submit.Platform{OS: "darwin", Arch: local.Arch} // the file contains an executable for each processor
	case string(start[:2]) == "MZ":
		x, err = readPE(f)
	default:
		return nil
	}
	switch {
	case err != nil:
		return err
	case x.of != local:
		return fmt.Errorf("an executable for %s, which peers of this machine's platform, %s, cannot run: name a Go package or a WebAssembly module", x.of, local)
	}
	return x.checkMPI()
}

// foreignMPI matches the libraries of other MPI implementations, without versions.
var foreignMPI = regexp.MustCompile(`^(libp?mpi(ch(cxx|f90)?|cxx|fort|_(abi|cray|cxx|dbg|ibm|mpifh|mt|usempi|usempi_ignore_tkr|usempif08))?|msmpi|impi)\.`)

// checkMPI rejects a program of another MPI implementation, whose ranks would not find each other. A
// program that links MPI statically, or from a library with another name, is recognized by the function
// that every MPI program must call.
func (x image) checkMPI() error {
	why := ""
	for _, l := range x.libraries {
		if foreignMPI.MatchString(strings.ToLower(l[strings.LastIndexAny(l, `/\`)+1:])) {
			why = "needs " + l
			break
		}
	}
	if why == "" && x.function != "" {
		why = "calls " + x.function
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("a program built for another MPI (%s): only Go programs that use package mpj can communicate (docs/mpj.md)", why)
}

func damaged(kind string, err error) error {
	return fmt.Errorf("a damaged %s executable: %w", kind, err)
}

var elfProcessors = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_386: "386", elf.EM_AARCH64: "arm64", elf.EM_ARM: "arm", elf.EM_RISCV: "riscv64",
	elf.EM_S390: "s390x", elf.EM_LOONGARCH: "loong64",
}

var elfSystems = map[elf.OSABI]string{
	elf.ELFOSABI_NONE: "linux", elf.ELFOSABI_LINUX: "linux", elf.ELFOSABI_FREEBSD: "freebsd",
	elf.ELFOSABI_NETBSD: "netbsd", elf.ELFOSABI_OPENBSD: "openbsd", elf.ELFOSABI_SOLARIS: "solaris",
}

func readELF(r io.ReaderAt) (x image, err error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return x, damaged("ELF", err)
	}
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return x, errors.New("an ELF file that is not an executable")
	}
	x.of = submit.Platform{OS: name(elfSystems, f.OSABI), Arch: name(elfProcessors, f.Machine)}
	switch {
	case f.Machine == elf.EM_PPC64 && f.ByteOrder == binary.LittleEndian:
		x.of.Arch = "ppc64le"
	case f.Machine == elf.EM_PPC64:
		x.of.Arch = "ppc64"
	case f.Machine == elf.EM_MIPS && strings.HasPrefix(runtime.GOARCH, "mips"):
		x.of.Arch = runtime.GOARCH // the header is identical for four platforms
	}
	if x.libraries, err = f.ImportedLibraries(); err != nil {
		return x, damaged("ELF", err)
	}
	x.function = mpiFunction(f)
	return x, nil
}

// mpiFunction returns the MPI function that a program defines or requires, or "". It does not recognize a
// stripped program.
func mpiFunction(f *elf.File) string {
	own, _ := f.Symbols()
	imported, _ := f.DynamicSymbols()
	for _, s := range slices.Concat(own, imported) {
		optional := s.Section == elf.SHN_UNDEF && elf.ST_BIND(s.Info) == elf.STB_WEAK
		if !optional && (s.Name == "MPI_Init" || s.Name == "MPI_Init_thread") {
			return s.Name
		}
	}
	return ""
}

var machoProcessors = map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.Cpu386: "386", macho.CpuArm64: "arm64", macho.CpuArm: "arm"}

func readMachO(r io.ReaderAt) (x image, err error) {
	f, err := macho.NewFile(r)
	if err != nil {
		return x, damaged("Mach-O", err)
	}
	x.of = submit.Platform{OS: "darwin", Arch: name(machoProcessors, f.Cpu)}
	x.libraries, err = f.ImportedLibraries()
	return x, err
}

var peProcessors = map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_I386: "386", pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}

func readPE(r io.ReaderAt) (x image, err error) {
	f, err := pe.NewFile(r)
	if err != nil {
		return x, damaged("Windows", err)
	}
	x.of = submit.Platform{OS: "windows", Arch: name(peProcessors, f.Machine)}
	x.libraries, err = f.ImportedLibraries()
	return x, err
}

// name returns the name of a processor or an operating system, or the number of an unknown one.
func name[K interface{ ~uint8 | ~uint16 | ~uint32 }](names map[K]string, k K) string {
	if n, ok := names[k]; ok {
		return n
	}
	return fmt.Sprintf("unknown(%d)", uint32(k))
}
