package peer

import "os"

// What Config.Machine may be beside a name.
const (
	thisMachine = "auto"
	noMachine   = "none"
)

// machineIdentity is what tells this machine from all others; empty: it is not said, or not known. That of a
// running system is the boot ID of its kernel, which containers on it share.
func (c Config) machineIdentity() string {
	switch c.Machine {
	case noMachine:
		return ""
	case thisMachine:
		id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		if err != nil {
			return "" // other systems than Linux
		}
		return "boot " + string(id)
	}
	return "name " + c.Machine
}
