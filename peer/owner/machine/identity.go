package machine

import "os"

// Special values for the identity of a machine.
const (
	This = "auto" // the machine identifies itself
	None = "none"
)

// Identity returns a string that identifies this machine, or "" if it is not known or not stated. stated is the
// owner's setting. For This, the identity is the kernel's boot ID, which all containers on the machine share.
func Identity(stated string) string {
	switch stated {
	case None:
		return ""
	case This:
		id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		if err != nil {
			return "" // not Linux
		}
		return "boot " + string(id)
	}
	return "name " + stated
}
