// Package filetransfer brings files from one peer to another by what is in
// them: programs and inputs to the peers of a job (staging), output files back
// to the submitter (collecting).
//
//	submitter (the origin)                           peer
//	files --Build--> Manifest                        Store (its cache)
//	      \--Serve-->|                                  |
//	                 |<-- open, request(unit)... ----| Fetch: what the store lacks
//	                 |--- part, bytes, part, ... ------>| partial/<digest>
//	                                                    | all pieces right: <aa>/<digest>
//	        a fellow: another of the job's peers        v
//	                 |<-- open, request(unit)... ----| Materialize --> scratch folder
//	                 |--- have, part, bytes, have, ... ->|
//
// A Manifest lists staged paths with size, mode and SHA-256 digest; it is itself
// content, named by its digest, so a job names everything that it stages by 32
// bytes. Collecting runs the same way with the roles exchanged: the peer calls
// Match, Build and Serve, the submitter Fetch and Materialize.
//
// Files that are still in the web come into the submitter's store by Download, and are staged from
// there like others.
//
// What is wanted is asked for in units of at most 256 KiB: a piece of a large
// file, or several small files. Peers that Share ask each other for what they have,
// and the origin for what nobody has yet, so that it sends everything about once
// however many they are. Peers at one site take from each other what one of them has fetched, so
// that each byte crosses the site's uplink about once: near.go.
//
// Beyond the site no more bytes are in flight than fill the link, so that control traffic, which
// passes the same queues, waits only briefly. The fetching peer reports how much has arrived, and flight.go
// derives from these reports how much the link holds.
//
// Over a link that is slower than compressing, pieces go compressed if that makes them
// smaller: pack.go.
//
// The promises kept here:
//
//   - T1: content enters a Store only under the digest of its bytes, each piece of
//     which was verified when it came (see Pieces), and is hashed once more on its way into a scratch folder. A wrong byte on the
//     wire or on the disk is an error that names the digest, never a file.
//   - T2: pieces that have arrived of a file stay, across broken streams and across
//     SIGKILL, and the next Fetch, of any job, asks for the rest only.
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
// What a peer sends is bounded, and nothing of it is believed: a fellow whose bytes
// are wrong is named in the log and not asked again, one that stalls loses what
// was asked of it to others. Each job has streams of its own, and shares the link
// evenly with others.
//
// The decisions are in pure cores: which unit a Fetch requests from which peer in plan.go, what the
// origin leaves to other peers in ledger.go, how much is in flight in flight.go, what to evict in
// evict.go. Service and Store carry them out.
package filetransfer
