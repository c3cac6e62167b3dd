package sandbox

import (
	"os"
	"slices"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// landlockVersion is that of the kernel's interface, 0 if it has none.
func landlockVersion() int {
	version, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return version
}

// leastLandlock is the first version of which restrictFiles enforces anything: it asks for
// files to be renamed from folder to folder, which the one before has no word for.
const leastLandlock = 2

// restrictFiles has the kernel check each file that is opened, each TCP connection and
// each signal, as far as it can. In a root of its own that is a second wall: all that
// there is may be read.
func restrictFiles(p Plan) error {
	readable := []string{"/", p.Executable()} // which /proc may lead out to
	if !p.Means.Namespaces {
		readable = slices.Concat(system, p.Readable, []string{p.Program, "/proc/cpuinfo", "/proc/meminfo", "/proc/self"})
	}
	rules := []landlock.Rule{landlock.RWFiles(devices...), landlock.RWDirs(p.Scratch).WithRefer()}
	for _, name := range readable {
		switch info, err := os.Stat(name); {
		case err != nil: // it is not there
		case info.IsDir():
			rules = append(rules, landlock.RODirs(name))
		default:
			rules = append(rules, landlock.ROFiles(name))
		}
	}
	return landlock.V9.BestEffort().Restrict(rules...)
}
