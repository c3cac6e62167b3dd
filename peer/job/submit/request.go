package submit

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A Request describes the job that a user wants to run. Paths of local files are absolute, since
// the peer that reads them may have another working directory.
type Request struct {
	Programs     []Executable            `json:"programs"` // one per platform
	Name         string                  `json:"name"`     // name of the program, for display
	Args         []string                `json:"args"`
	Settings     []string                `json:"settings"` // environment settings; see proclink.Settings
	N            int                     `json:"n"`        // number of ranks
	R            int                     `json:"r"`        // replicas per rank
	Strategy     string                  `json:"strategy"`
	Inputs       []filetransfer.Source   `json:"inputs"`       // local files to stage
	Downloads    []filetransfer.Download `json:"downloads"`    // files to download from the web and then stage
	Outputs      []string                `json:"outputs"`      // patterns of the files to collect
	OutputDir    string                  `json:"outputDir"`    // where collected files go; must be empty unless NewFolder is set
	NewFolder    bool                    `json:"newFolder"`    // collect into a new directory in OutputDir; a single, exactly named file goes to OutputDir itself
	Executable   bool                    `json:"executable"`   // keep the executable bits of collected files
	Channels     []string                `json:"channels"`     // kinds of channels, best first; empty: all kinds
	Explain      bool                    `json:"explain"`      // report the routes of messages in a ChannelsEvent
	OnDivergence string                  `json:"onDivergence"` // Stop or Warn; empty: Stop
	Heal         bool                    `json:"heal"`         // replace replicas that are lost while the job runs
	Filter       discovery.Filter        `json:"filter"`       // restricts the peers
	DryRun       bool                    `json:"dryRun"`       // report where the job would run, without running it
	Wait         time.Duration           `json:"wait"`         // how long to wait for enough peers
	Timeout      time.Duration           `json:"timeout"`      // limit for the whole job; 0: none
	Away         time.Duration           `json:"away"`         // tolerated disconnection of the submitter from its peers; at most MaxAway
}

// An Executable is the program file for one platform.
type Executable struct {
	Platform
	Path string `json:"path"`
}

// A Platform is the operating system and processor that an executable needs.
type Platform struct {
	OS   string `json:"os"`   // as runtime.GOOS
	Arch string `json:"arch"` // as runtime.GOARCH
}

// anywhere is the platform of WebAssembly modules, which run on every peer.
var anywhere = Platform{OS: jobspec.WasmOS, Arch: jobspec.WasmArch}

// String returns the platform in Go's notation, as in "linux/amd64".
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Validate returns an error for every invalid field of r.
func (r Request) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.N < 1 {
		wrong("-n is %d: a job needs at least 1 rank", r.N)
	}
	if r.R < 1 {
		wrong("-r is %d: each rank needs at least 1 replica", r.R)
	}
	if r.N >= 1 && r.R >= 1 && r.N > view.MaxProcesses/r.R {
		wrong("-n %d -r %d: a job has at most %d processes", r.N, r.R, view.MaxProcesses)
	}
	if len(r.Programs) == 0 {
		wrong("no program")
	}
	for _, p := range r.Programs {
		if !filepath.IsAbs(p.Path) {
			wrong("program %q: not an absolute path", p.Path)
		}
	}
	if _, err := reservation.ParseStrategy(r.Strategy); err != nil {
		errs = append(errs, err)
	}
	for _, d := range r.Downloads {
		if err := d.Validate(); err != nil {
			wrong("input: %w", err)
		}
	}
	if len(r.Outputs) > filetransfer.MaxPatterns {
		wrong("%d patterns with -o: at most %d are taken", len(r.Outputs), filetransfer.MaxPatterns)
	}
	for _, pattern := range r.Outputs {
		if _, err := path.Match(pattern, ""); err != nil {
			wrong("-o %q: %w", pattern, err)
		} else if !fs.ValidPath(pattern) || pattern == "." {
			wrong("-o %q: want a path below the program's folder, without \".\" and \"..\"", pattern)
		}
	}
	if len(r.Outputs) > 0 && !filepath.IsAbs(r.OutputDir) {
		wrong("output folder %q: not an absolute path", r.OutputDir)
	}
	if err := proclink.CheckSettings(r.Settings); err != nil {
		wrong("%w", err)
	}
	if _, err := proclink.ParseKinds(r.Channels); err != nil {
		wrong("--channels: %w", err)
	}
	if r.R > 1 && slices.Equal(r.Channels, []string{string(proclink.Shm)}) {
		wrong("--channels shm: replicas of a rank run on different peers, which share no memory: give -r 1, or other channels too")
	}
	if d := r.OnDivergence; d != "" && d != Stop && d != Warn {
		wrong("--on-divergence %.20q: want %s or %s", d, Stop, Warn)
	}
	if r.Wait < 0 {
		wrong("-w is %v: want 0 seconds or more", r.Wait)
	}
	if r.Timeout < 0 {
		wrong("--timeout is %v: want a time such as 90s, or 0 for no limit", r.Timeout)
	}
	if r.Away < 0 || r.Away > MaxAway {
		wrong("--away is %v: want a time of at most %gh", r.Away, MaxAway.Hours())
	}
	return errors.Join(errs...)
}

// heals reports whether lost replicas are replaced.
func (r Request) heals() bool { return r.Heal && r.R > 1 }
