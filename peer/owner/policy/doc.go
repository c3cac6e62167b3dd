// Package policy decides which submitters may use this machine, and which programs they may run. The owner's
// rules are data, and one pure function judges a request by them.
//
//	submitter ----> class ----> rule of the class ----> accepted: kind, slots
//	                mine         none, wasm, native      refused: Refusal
//	                allowed      slots at once
//	                members
//	                everyone
//
// The first class that fits counts. Mine is this peer itself, which includes its owner's p2prun. Allowed
// are the submitters in the owner's list. Members are the members of a private network, each invited by the
// network's owner. Everyone is the rest. All jobs of denied submitters are refused, whatever other lists
// contain (S3). An entry in the list of allowed submitters takes no rights from others.
//
// A native program is restricted only by its sandbox. A WebAssembly module can access only its memory and
// its scratch folder. The rules are therefore levels: none, wasm, and native, which includes wasm.
//
// Temporary conditions refuse all submitters but the owner: quiet hours, and the rules of package presence.
// The reservation service judges each request for slots before any file is sent. The launcher judges again
// by the actual programs of the job.
package policy
