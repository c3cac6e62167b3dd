package sandbox

import (
	"os"
	"slices"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// landlockVersion returns the version of the kernel's Landlock interface, 0 if it has none.
func landlockVersion() int {
	version, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return version
}

// leastLandlock is the first version with which restrictFiles has an effect. It needs the right to move
// files between folders, which version 1 lacks.
const leastLandlock = 2

// restrictFiles makes the kernel check opened files, TCP connections and signals, as far as its version
// supports. In a separate root, this is a second layer: everything visible there may be read.
func restrictFiles(p Plan) error {
	readable := []string{"/", p.Executable()} // to which /proc may lead
	if !p.Means.Namespaces {
		readable = slices.Concat(system, p.Readable, []string{p.Program, "/proc/cpuinfo", "/proc/meminfo", "/proc/self"})
	}
	rules := []landlock.Rule{landlock.RWFiles(devices...), landlock.RWDirs(p.Scratch).WithRefer()}
	for _, name := range readable {
		switch info, err := os.Stat(name); {
		case err != nil: // it does not exist
		case info.IsDir():
			rules = append(rules, landlock.RODirs(name))
		default:
			rules = append(rules, landlock.ROFiles(name))
		}
	}
	return landlock.V9.BestEffort().Restrict(rules...)
}
