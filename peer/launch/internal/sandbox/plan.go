package sandbox

import "strings"

// A Plan says what a program may do, and where it lies. All paths are absolute and of
// this machine.
type Plan struct {
	Means    Means
	Program  string   // executable
	Scratch  string   // working folder
	Readable []string // further files and folders that it may read, where they are
	Tool     bool     // the program is the owner's, such as what runs a module
}

// Executable is the program as it sees itself: where it is on the machine, so that the
// owner finds it in lists of processes, but for the owner's own, which may lie where nothing
// can be put.
func (p Plan) Executable() string {
	if p.Means.Namespaces && (p.Tool || p.own()) {
		return "/program"
	}
	return p.Program
}

// own reports whether the program is the peer's own executable.
func (p Plan) own() bool { return strings.HasPrefix(p.Program, "/proc/") }

// system is what programs need of the machine, as far as it is there: tools,
// libraries, and what these read. Nothing of it is the owner's own.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives",
	"/etc/localtime", "/etc/timezone", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/fonts",
	"/etc/mime.types", "/etc/protocols", "/etc/services", "/etc/python3", "/etc/perl",
}

// devices are those that hold nothing.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// made are files of which the program gets its own.
var made = map[string]string{
	"/etc/passwd":        "user:x:1000:1000::/:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n",
	"/etc/group":         "user:x:1000:\nnogroup:x:65534:\n",
	"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	"/etc/hosts":         "127.0.0.1 localhost\n::1 localhost\n",
	"/etc/hostname":      hostname + "\n",
}

// links are symbolic links, from name to target.
var links = map[string]string{
	"/dev/fd":    "/proc/self/fd",
	"/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2",
}

// hostname is what a program is told that its machine is called: nothing of the owner's.
const hostname = "p2pmpi"
