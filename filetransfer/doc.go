// Package filetransfer copies files between peers by content: programs and inputs to the peers of a job
// (staging), and output files back to the submitter (collecting).
//
//	submitter (the origin)                           peer
//	files --Build--> Manifest                        Store (its cache)
//	      \--Serve-->|                                  |
//	                 |<-- open, request(unit)... ----| Fetch: missing contents
//	                 |--- part, bytes, part, ... ------>| partial/<digest>
//	                                                    | all pieces verified: <aa>/<digest>
//	        a member of the swarm: a peer of the job    v
//	                 |<-- open, request(unit)... ----| Materialize --> scratch folder
//	                 |--- have, part, bytes, have, ... ->|
//
// A Manifest lists staged paths with size, mode and SHA-256 digest. The manifest is itself content and is
// identified by its digest, so 32 bytes identify everything that a job stages. Collecting is the same with
// the roles exchanged: the peer calls Match, Build and Serve, the submitter Fetch and Materialize.
//
// Download brings files from the web into the submitter's store, from which they are staged.
//
// A fetching peer requests content in units of at most 256 KiB: a piece of a large file, or several small
// files. Peers that call Share form a swarm. Its members request units from each other, and from the origin
// only the units that no member has. So the origin sends each unit about once, however many peers there
// are. Peers at one site exchange the units that one of them has fetched, so each byte crosses the site's
// uplink about once; see near.go.
//
// On links beyond the site, the bytes in flight are limited to the number that fills the link. So control
// traffic, which shares the queues, waits only briefly. The fetching peer reports how much has arrived,
// and flight.go derives the capacity of the link from these reports.
//
// On a link that is slower than compression, pieces are compressed if that makes them smaller; see
// pack.go.
//
// The package keeps these promises:
//
//   - T1: content enters a Store only under the digest of its bytes. Each piece is verified on arrival
//     (see Pieces), and the content is hashed again when it is copied to a scratch folder. A wrong byte
//     on the wire or on disk leads to an error that names the digest, never to a file.
//   - T2: pieces that have arrived are kept, across broken streams and SIGKILL. The next Fetch, for any
//     job, requests only the rest.
//   - T3: a Manifest contains only clean relative paths, and Materialize writes through an os.Root. So
//     neither a path nor a symbolic link leads out of the folder.
//   - T4: a Store never holds more bytes than its limit. It makes room by evicting the least recently
//     used content, but never content that a job has pinned.
//
// Not promised: that content stays in a Store after Unpin, or that a peer continues to serve content. If
// the serving peer disappears, Fetch fails after a bounded number of attempts and keeps its partial files
// for the next one. The limit counts the bytes of contents, without the overhead of the file system.
//
// Data from peers is bounded and never trusted. A member that sends wrong bytes is logged and not asked
// again. If a member stalls, its units are requested from other peers. Each job has streams of its own
// and shares the link evenly with other jobs.
//
// Pure cores make the decisions: plan.go selects the units that a Fetch requests from each peer, and
// ledger.go those that the origin leaves to other peers. flight.go determines how much is in flight, and
// evict.go which content to evict. Service and Store carry the decisions out.
package filetransfer
