package jobspec

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/sealed"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Spec describes a job as submitted.
type Spec struct {
	ID        string     `json:"id"`        // 32 hexadecimal digits, unique
	Submitter p2ppeer.ID `json:"submitter"` // the signer
	Protocol  int        `json:"protocol"`  // version.Protocol of the submitter
	Created   time.Time  `json:"created"`
	N         int        `json:"n"`         // number of ranks
	R         int        `json:"r"`         // replicas per rank
	Name      string     `json:"name"`      // name of the program, for display
	Args      []string   `json:"args"`      // arguments without the program's name
	Settings  []string   `json:"settings"`  // environment settings; see proclink.Settings
	Programs  []Program  `json:"programs"`  // one per platform
	Inputs    string     `json:"inputs"`    // digest of the manifest of the input files
	InputsLen int64      `json:"inputsLen"` // size of that manifest in bytes
	// InputsPieces verifies the manifest's pieces; see filetransfer.Pieces.
	InputsPieces []byte `json:"inputsPieces,omitempty"`
}

// A Program is the executable for one platform.
type Program struct {
	OS     string `json:"os"`               // as runtime.GOOS
	Arch   string `json:"arch"`             // as runtime.GOARCH
	Digest string `json:"digest"`           // SHA-256, hexadecimal
	Size   int64  `json:"size"`             // in bytes
	Pieces []byte `json:"pieces,omitempty"` // verifies its pieces; see filetransfer.Pieces
}

// Bounds of a spec from another peer.
const (
	MaxEncoded  = 1 << 20 // bytes of a signed spec
	maxArgs     = 4096
	maxPrograms = 64
)

var (
	idPattern     = regexp.MustCompile(`^[0-9a-f]{32}$`)
	digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// validate returns an error for the first invalid field of s.
func (s *Spec) validate() error {
	switch {
	case !idPattern.MatchString(s.ID):
		return fmt.Errorf("job ID %q is not 32 hexadecimal digits", s.ID)
	case s.Protocol != version.Protocol:
		return fmt.Errorf("job uses protocol version %d, this peer uses version %d", s.Protocol, version.Protocol)
	case s.N < 1 || s.R < 1 || s.N > view.MaxProcesses/s.R:
		return fmt.Errorf("job with invalid n=%d, r=%d", s.N, s.R)
	case s.Name == "" || len(s.Name) > 255:
		return errors.New("job with an invalid program name")
	case len(s.Args) > maxArgs:
		return fmt.Errorf("job with %d arguments, at most %d are allowed", len(s.Args), maxArgs)
	case len(s.Programs) < 1 || len(s.Programs) > maxPrograms:
		return fmt.Errorf("job with %d programs, want 1 to %d", len(s.Programs), maxPrograms)
	case !digestPattern.MatchString(s.Inputs) || s.InputsLen < 0:
		return errors.New("job with an invalid digest of its inputs")
	}
	if err := proclink.CheckSettings(s.Settings); err != nil {
		return err
	}
	for _, p := range s.Programs {
		if !digestPattern.MatchString(p.Digest) || p.Size <= 0 {
			return fmt.Errorf("program for %s/%s with an invalid digest or size", p.OS, p.Arch)
		}
		if p.Wasm() && len(s.Programs) > 1 { // all replicas of a rank must run the same kind of program
			return errors.New("job with a WebAssembly module and other programs")
		}
	}
	return nil
}

// The platform of WebAssembly modules. They run on any machine that has a WebAssembly engine.
const (
	WasmOS   = "wasip1"
	WasmArch = "wasm"
)

// Wasm reports whether p is a WebAssembly module rather than a native program.
func (p Program) Wasm() bool { return p.OS == WasmOS && p.Arch == WasmArch }

// Program returns the executable for a platform.
func (s *Spec) Program(os, arch string) (Program, bool) {
	for _, p := range s.Programs {
		if p.OS == os && p.Arch == arch {
			return p, true
		}
	}
	return Program{}, false
}

// RunsOn reports whether s has a native program for a platform, or a WebAssembly module.
func (s *Spec) RunsOn(os, arch string) bool {
	_, native := s.Program(os, arch)
	return native || slices.ContainsFunc(s.Programs, Program.Wasm)
}

// Sign returns s in an envelope signed with the submitter's key.
func (s *Spec) Sign(key crypto.PrivKey) ([]byte, error) {
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("sign job %s: %w", s.ID, err)
	}
	return sealed.Seal((*signed)(s), key)
}

// Verify decodes the output of Sign. The returned spec is valid and was signed by the peer that it names
// as its submitter.
func Verify(envelope []byte) (*Spec, error) {
	var s Spec
	signer, err := sealed.Open(envelope, MaxEncoded, (*signed)(&s))
	if err == nil && signer != s.Submitter {
		err = fmt.Errorf("signed by %s, submitted by %s", signer, s.Submitter)
	}
	if err == nil {
		err = s.validate()
	}
	if err != nil {
		return nil, fmt.Errorf("verify job: %w", err)
	}
	return &s, nil
}

// signed makes a Spec a record, so that an envelope can contain it.
type signed Spec

func (*signed) Kind() string                     { return "job" }
func (s *signed) MarshalRecord() ([]byte, error) { return json.Marshal((*Spec)(s)) }
func (s *signed) UnmarshalRecord(b []byte) error { return json.Unmarshal(b, (*Spec)(s)) }
