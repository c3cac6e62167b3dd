// Package version defines the release and the protocol version.
package version
