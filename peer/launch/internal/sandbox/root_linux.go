package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// A root is a file system that is being put together: a small one in memory, into which
// parts of the machine's are bound.
type root struct{ at string }

// attributes of what is bound: nothing there gives rights or is a device, and only the
// scratch folder is written to.
const (
	harmless = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	readOnly = harmless | unix.MOUNT_ATTR_RDONLY
)

// enterRoot makes this process, which has a mount namespace of its own, see p and nothing else.
func enterRoot(p Plan) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate mounts: %w", err)
	}
	// What is made here is the guest's to read, whatever the owner's own files are.
	defer unix.Umask(unix.Umask(0))
	// Both may lie below what the new root hides.
	scratch, err := take(p.Scratch)
	if err != nil {
		return err
	}
	defer unix.Close(scratch)
	program, err := take(p.Program)
	replaced := p.own() && errors.Is(err, fs.ErrNotExist)
	if err != nil && !replaced {
		return err
	}
	defer unix.Close(program)
	r := root{p.Scratch}
	if err := unix.Mount("tmpfs", r.at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return fmt.Errorf("make a root: %w", err)
	}
	if err := r.furnish(); err != nil {
		return err
	}
	for _, from := range p.Readable {
		if err := r.bind(from, from, readOnly); err != nil {
			return err
		}
	}
	if replaced {
		err = r.lead(p)
	} else {
		err = r.put(program, p.Executable(), false, readOnly)
	}
	if err != nil {
		return err
	}
	if err := r.put(scratch, p.Scratch, true, harmless); err != nil {
		return err
	}
	if err := r.link(p.Scratch); err != nil {
		return err
	}
	if err := r.enter(p.Scratch); err != nil {
		return err
	}
	return unix.Sethostname([]byte(hostname))
}

// furnish puts in what every program gets.
func (r root) furnish() error {
	for _, p := range system {
		if err := r.show(p); err != nil {
			return err
		}
	}
	for _, d := range devices {
		if err := r.bind(d, d, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC); err != nil {
			return err
		}
	}
	for name, content := range made {
		err := os.MkdirAll(path.Dir(r.at+name), 0o755)
		if err == nil {
			err = os.WriteFile(r.at+name, []byte(content), 0o644)
		}
		if err != nil {
			return err
		}
	}
	return r.mountProc()
}

// show binds what is called so on the machine, if anything is; a symbolic link is made anew.
func (r root) show(name string) error {
	target, err := os.Readlink(name)
	if err == nil {
		if err = os.MkdirAll(path.Dir(r.at+name), 0o755); err == nil {
			err = os.Symlink(target, r.at+name)
		}
		return err
	}
	err = r.bind(name, name, readOnly)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// bind shows what is at from, with all that is mounted below it, as to.
func (r root) bind(from, to string, attributes uint64) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	tree, err := take(from)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return r.put(tree, to, info.IsDir(), attributes)
}

// take copies the mount of what is called so, with all that is mounted below it. What
// /proc leads to is not of this process's mounts, but has a name there.
func take(name string) (tree int, err error) {
	if target, err := os.Readlink(name); err == nil && strings.HasPrefix(name, "/proc/") {
		name = target
	}
	tree, err = unix.OpenTree(unix.AT_FDCWD, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, fmt.Errorf("show %s: %w", name, err)
	}
	return tree, nil
}

// put shows what has been taken as to.
func (r root) put(tree int, to string, folder bool, attributes uint64) (err error) {
	at := r.at + to
	if folder {
		err = os.MkdirAll(at, 0o755)
	} else if err = os.MkdirAll(path.Dir(at), 0o755); err == nil {
		err = os.WriteFile(at, nil, 0o644)
	}
	if err == nil {
		err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attributes})
	}
	if err == nil {
		err = unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	if err != nil {
		return fmt.Errorf("show %s: %w", to, err)
	}
	return nil
}

// lead has the way to the peer's own executable lead through /proc: the peer has been
// upgraded, and the file that it runs from has no name any more.
func (r root) lead(p Plan) error {
	if _, err := os.Lstat(r.at + p.Program); err != nil {
		return fmt.Errorf("the file of p2pboot was replaced, and this system has no other way to it: p2pboot has to be started anew: %w", err)
	}
	return os.Symlink(p.Program, r.at+p.Executable())
}

// mountProc shows the processes of the namespace. Where the machine's own is partly covered,
// as in a container, the kernel allows none: then there is none.
func (r root) mountProc() error {
	to := r.at + "/proc"
	if err := os.Mkdir(to, 0o555); err != nil {
		return err
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RDONLY
	for _, options := range []string{"hidepid=2", "hidepid=2,subset=pid"} {
		if unix.Mount("proc", to, "proc", flags, options) == nil {
			break
		}
	}
	return r.hideBoot()
}

// hideBoot hides what the machine was booted with: it can name disks and hold secrets.
func (r root) hideBoot() error {
	for _, name := range []string{"/proc/cmdline", "/proc/bootconfig"} {
		err := unix.Mount(r.at+"/dev/null", r.at+name, "", unix.MS_BIND, "")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("hide %s: %w", name, err)
		}
	}
	return nil
}

// link makes symbolic links. Temporary files go to the scratch folder, unless that, or what
// the owner shows, is there itself. It comes last: links must not lead who puts things in.
func (r root) link(scratch string) error {
	for name, target := range links {
		if err := os.Symlink(target, r.at+name); err != nil {
			return err
		}
	}
	if err := os.Symlink(scratch, r.at+"/tmp"); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// enter makes r the root of this process, and takes the machine's own away.
func (r root) enter(scratch string) error {
	if err := unix.Chdir(r.at); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root: %w", err)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: readOnly}); err != nil {
		return fmt.Errorf("close the root: %w", err)
	}
	return unix.Chdir(scratch)
}
