package sandbox

// Means is a set of sandbox mechanisms.
type Means struct {
	Namespaces bool `json:"namespaces"`
	Landlock   bool `json:"landlock"`
	Seccomp    bool `json:"seccomp"`
}

// A Report states which mechanisms work on this machine. The zero Report states that none does.
type Report struct {
	Means
	LandlockVersion int `json:"landlockVersion"` // version of the kernel's interface; 0: none

	NoNamespaces string `json:"noNamespaces,omitempty"` // why namespaces do not work
	NoLandlock   string `json:"noLandlock,omitempty"`
	NoSeccomp    string `json:"noSeccomp,omitempty"`
}

// A Resource is a part of this machine that the sandbox protects from a program.
type Resource string

// The resources, each with what a program could do if it were not protected.
const (
	FileSystem Resource = "file system" // read the owner's files, write outside its scratch folder
	Network    Resource = "network"     // open sockets
	Processes  Resource = "processes"   // signal the owner's processes
)

// A Gap is a resource that the sandbox does not protect.
type Gap struct {
	Resource Resource `json:"wall"`
	Why      string   `json:"why"`
}

// Gaps returns the unprotected resources, in the order of their constants. A careful owner runs strangers'
// native programs only on a machine that has no gaps.
//
// Landlock alone is not sufficient. Without namespaces, the program runs as the peer's own user. Landlock
// then allows it to chmod that user's files and to slow down that user's processes. A network namespace is
// not sufficient either: sockets that the peer hands over belong to the machine's namespace, and only
// seccomp prevents the program from reconnecting them.
func (r Report) Gaps() (gaps []Gap) {
	if !r.Namespaces {
		gaps = append(gaps, Gap{FileSystem, r.NoNamespaces})
	}
	if !r.Seccomp {
		gaps = append(gaps, Gap{Network, r.NoSeccomp})
	}
	if !r.Namespaces {
		gaps = append(gaps, Gap{Processes, r.NoNamespaces})
	}
	return gaps
}
