package sandbox

import "strings"

// A Plan states what a program may do, and where its files are. All paths are absolute paths of this
// machine.
type Plan struct {
	Means    Means
	Program  string   // executable
	Scratch  string   // working folder
	Readable []string // further files and folders that it may read, at their paths
	Tool     bool     // the program belongs to the owner, for instance a module runner
}

// Executable returns the path of the program as the program sees it. It is the path on the machine, so that
// the owner recognizes it in process lists. Only the owner's own programs use another path, since theirs
// may lie where nothing can be mounted.
func (p Plan) Executable() string {
	if p.Means.Namespaces && (p.Tool || p.own()) {
		return "/program"
	}
	return p.Program
}

func (p Plan) own() bool { return strings.HasPrefix(p.Program, "/proc/") }

// system lists the parts of the machine that programs need, as far as they exist: tools, libraries, and the
// files that these read. It contains no data of the owner.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives",
	"/etc/localtime", "/etc/timezone", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/fonts",
	"/etc/mime.types", "/etc/protocols", "/etc/services", "/etc/python3", "/etc/perl",
}

// devices lists the devices that hold no data.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// made maps files to contents that replace those of the machine.
var made = map[string]string{
	"/etc/passwd":        "user:x:1000:1000::/:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n",
	"/etc/group":         "user:x:1000:\nnogroup:x:65534:\n",
	"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	"/etc/hosts":         "127.0.0.1 localhost\n::1 localhost\n",
	"/etc/hostname":      hostname + "\n",
}

// links maps symbolic links to their targets.
var links = map[string]string{
	"/dev/fd":    "/proc/self/fd",
	"/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2",
}

// hostname is the host name that programs see; it reveals nothing about the owner.
const hostname = "p2pmpi"
