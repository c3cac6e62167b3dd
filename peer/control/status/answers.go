package status

import (
	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/peer/launch"
)

// A Cache describes the staged files that a peer keeps.
type Cache struct {
	Home     string                 `json:"home"`
	Running  bool                   `json:"running"`         // true if a peer runs on the home
	Bytes    int64                  `json:"bytes"`           // total size
	Limit    int64                  `json:"limit,omitempty"` // limit in bytes; set if a peer runs
	Contents []filetransfer.Content `json:"contents"`        // most recently used first
}

// Trimmed is the result of trimming a cache.
type Trimmed struct {
	Freed int64 `json:"freed"` // bytes
	Bytes int64 `json:"bytes"` // bytes that remain
}

// A Stopped is a job that the owner has stopped.
type Stopped struct {
	Job string           `json:"job"` // full ID
	How launch.Departure `json:"how"`
}
