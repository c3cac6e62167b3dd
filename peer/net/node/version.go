package node

import (
	"fmt"
	"strings"

	"github.com/p2pmpi/p2pmpi/internal/version"
)

// protocolVersion is the version string that peers exchange when they connect.
var protocolVersion = fmt.Sprintf("%s%d", protocolPrefix, version.Protocol)

const protocolPrefix = "p2pmpi/"

// otherVersion reports whether the version string of a remote host names another version of this protocol.
// It returns false for hosts that do not run p2pmpi.
func otherVersion(remote string) bool {
	return strings.HasPrefix(remote, protocolPrefix) && remote != protocolVersion
}
