package sandbox

// Means are what walls are made of.
type Means struct {
	Namespaces bool `json:"namespaces"`
	Landlock   bool `json:"landlock"`
	Seccomp    bool `json:"seccomp"`
}

// A Report tells what this machine lets the peer build. The zero Report is of one
// that lets it build nothing.
type Report struct {
	Means
	LandlockVersion int `json:"landlockVersion"` // of the kernel's interface, 0 is none

	NoNamespaces string `json:"noNamespaces,omitempty"` // why there are none
	NoLandlock   string `json:"noLandlock,omitempty"`
	NoSeccomp    string `json:"noSeccomp,omitempty"`
}

// A Wall keeps a program from something.
type Wall string

// The walls, each with what a program could do if it was missing.
const (
	FileSystem Wall = "file system" // read the owner's files, write outside its scratch folder
	Network    Wall = "network"     // open sockets
	Processes  Wall = "processes"   // signal the owner's processes
)

// A Lack is a wall that does not stand.
type Lack struct {
	Wall Wall   `json:"wall"`
	Why  string `json:"why"`
}

// Lacks returns the walls that do not stand, in the order of their constants; none is what a
// careful owner wants of a machine that runs strangers' native programs.
//
// Landlock is none by itself. Without namespaces the program is the peer's own user, whose
// files Landlock lets it chmod and whose processes it lets it slow down. A network namespace
// is none either: sockets that the peer hands over belong to the machine's, and seccomp
// keeps them from being connected anew.
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
