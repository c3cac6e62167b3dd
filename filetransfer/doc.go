// Package filetransfer brings files from one peer to another by what is in
// them: programs and inputs to the peers of a job (staging), output files back
// to the submitter (collecting).
//
//	submitter                                        peer
//	files --Build--> Manifest                        Store (its cache)
//	      \--Serve-->|                                  |
//	                 |<-- Request(digest, offset)... ---| Fetch: what the store lacks
//	                 |--- Chunk, bytes, Chunk, ... ---->| partial/<digest>
//	                                                    | SHA-256 right: <aa>/<digest>
//	                                                    v
//	                                                 Materialize --> scratch folder
//
// A Manifest lists staged paths with size, mode and SHA-256 digest; it is itself
// content, named by its digest, so a job names everything that it stages by 32
// bytes. Collecting runs the same way with the roles exchanged: the peer calls
// Match, Build and Serve, the submitter Fetch and Materialize.
//
// Files that are still in the web come into the submitter's store by Download, and are staged from
// there like others.
//
// The promises kept here:
//
//   - T1: content enters a Store only under the digest of its bytes, and is
//     hashed once more on its way into a scratch folder. A wrong byte on the
//     wire or on the disk is an error that names the digest, never a file.
//   - T2: what has arrived of a file stays, across broken streams and across
//     SIGKILL, and the next Fetch asks for the rest only.
//   - T3: a Manifest has clean relative paths only, and Materialize writes
//     through an os.Root, so neither a path nor a symbolic link leads out.
//   - T4: a Store never holds more bytes than its limit; it makes room by
//     evicting the least recently used content, never what a job has pinned.
//
// Not promised: that content stays in a Store after Unpin, or that a peer still
// serves what it served a moment ago. When the serving peer vanishes, Fetch
// fails after a bounded number of attempts and leaves its partial files to the
// next one. The limit counts the bytes of contents, not the file system's own.
//
// The decisions of a Fetch (what to ask for, from where, when to give up) are in
// the pure plan of plan.go, the choice of what to evict in evict.go; Service
// and Store carry them out.
package filetransfer
