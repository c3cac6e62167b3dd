package peer

import "os"

// Special values of Config.Machine.
const (
	thisMachine = "auto"
	noMachine   = "none"
)

// machineIdentity returns a string that identifies this machine, or "" if it is not known or not stated.
// For "auto" it is the kernel's boot ID, which all containers on the machine share.
func (c Config) machineIdentity() string {
	switch c.Machine {
	case noMachine:
		return ""
	case thisMachine:
		id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		if err != nil {
			return "" // not Linux
		}
		return "boot " + string(id)
	}
	return "name " + c.Machine
}
