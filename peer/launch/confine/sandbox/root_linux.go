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

// A root is a file system under construction: a small one in memory, into which parts of the machine's are
// bind-mounted.
type root struct{ at string }

// Attributes of bind mounts: none allows set-user-ID programs or devices, and only the scratch folder is
// writable.
const (
	harmless = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	readOnly = harmless | unix.MOUNT_ATTR_RDONLY
)

// enterRoot makes this process, which has its own mount namespace, see only the files of p.
func enterRoot(p Plan) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	// Files created here must be readable by the guest, whatever the peer's umask.
	defer unix.Umask(unix.Umask(0))
	// Both may lie below a folder that the new root hides.
	scratch, err := cloneMount(p.Scratch)
	if err != nil {
		return err
	}
	defer unix.Close(scratch)
	program, err := cloneMount(p.Program)
	replaced := p.own() && errors.Is(err, fs.ErrNotExist)
	if err != nil && !replaced {
		return err
	}
	defer unix.Close(program)
	r := root{p.Scratch}
	if err := unix.Mount("tmpfs", r.at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return fmt.Errorf("mount the new root: %w", err)
	}
	if err := r.addSystemFiles(); err != nil {
		return err
	}
	for _, from := range p.Readable {
		if err := r.bind(from, from, readOnly); err != nil {
			return err
		}
	}
	if replaced {
		err = r.linkOwn(p)
	} else {
		err = r.mount(program, p.Executable(), false, readOnly)
	}
	if err != nil {
		return err
	}
	if err := r.mount(scratch, p.Scratch, true, harmless); err != nil {
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

// addSystemFiles adds the files that every program gets.
func (r root) addSystemFiles() error {
	for _, p := range system {
		if err := r.bindIfExists(p); err != nil {
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

// bindIfExists bind-mounts the file or folder of that name, if it exists. It copies a symbolic link.
func (r root) bindIfExists(name string) error {
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

// bind bind-mounts from, with all mounts below it, at to.
func (r root) bind(from, to string, attributes uint64) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	tree, err := cloneMount(from)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return r.mount(tree, to, info.IsDir(), attributes)
}

// cloneMount clones the mount of the given file, with all mounts below it. A link in /proc may lead out of
// this process's mounts, so cloneMount uses the path that it names.
func cloneMount(name string) (tree int, err error) {
	if target, err := os.Readlink(name); err == nil && strings.HasPrefix(name, "/proc/") {
		name = target
	}
	tree, err = unix.OpenTree(unix.AT_FDCWD, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, fmt.Errorf("clone mount of %s: %w", name, err)
	}
	return tree, nil
}

func (r root) mount(tree int, to string, folder bool, attributes uint64) (err error) {
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
		return fmt.Errorf("mount %s: %w", to, err)
	}
	return nil
}

// linkOwn makes the path of the peer's own executable a link through /proc. The peer was upgraded, so the
// file that it runs from was deleted.
func (r root) linkOwn(p Plan) error {
	if _, err := os.Lstat(r.at + p.Program); err != nil {
		return fmt.Errorf("the file of p2pboot was replaced, and this system has no other path to it: restart p2pboot: %w", err)
	}
	return os.Symlink(p.Program, r.at+p.Executable())
}

// mountProc mounts /proc for the namespace's processes. If the machine's own /proc is partly covered, as in
// a container, the kernel refuses that, and the program has no /proc.
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

// hideBoot hides the boot parameters, which can name disks and contain secrets.
func (r root) hideBoot() error {
	for _, name := range []string{"/proc/cmdline", "/proc/bootconfig"} {
		err := unix.Mount(r.at+"/dev/null", r.at+name, "", unix.MS_BIND, "")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("hide %s: %w", name, err)
		}
	}
	return nil
}

// link creates the symbolic links. /tmp leads to the scratch folder, unless that folder or a readable one
// is there itself. link is called last, so that no link redirects an earlier mount.
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

// enter makes r the root of this process, and detaches the machine's root.
func (r root) enter(scratch string) error {
	if err := unix.Chdir(r.at); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the old root: %w", err)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: readOnly}); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	return unix.Chdir(scratch)
}
