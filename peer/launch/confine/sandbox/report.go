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

// A Wall is a kind of protection against a program.
type Wall string

// The walls, each with what a program could do without it.
const (
	FileSystem Wall = "file system" // read the owner's files, write outside its scratch folder
	Network    Wall = "network"     // open sockets
	Processes  Wall = "processes"   // signal the owner's processes
)

// A Lack is a missing wall.
type Lack struct {
	Wall Wall   `json:"wall"`
	Why  string `json:"why"`
}

// Lacks returns the missing walls, in the order of their constants. A careful owner runs strangers' native
// programs only on a machine that lacks none.
//
// Landlock alone is not sufficient. Without namespaces, the program runs as the peer's own user. Landlock
// then allows it to chmod that user's files and to slow down that user's processes. A network namespace is
// not sufficient either: sockets that the peer hands over belong to the machine's namespace, and only
// seccomp prevents the program from reconnecting them.
func (r Report) Lacks() (lacks []Lack) {
	if !r.Namespaces {
		lacks = append(lacks, Lack{FileSystem, r.NoNamespaces})
	}
	if !r.Seccomp {
		lacks = append(lacks, Lack{Network, r.NoSeccomp})
	}
	if !r.Namespaces {
		lacks = append(lacks, Lack{Processes, r.NoNamespaces})
	}
	return lacks
}
