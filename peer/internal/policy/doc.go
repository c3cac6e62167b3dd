// Package policy says who may run what on this machine: the owner's rules as data, and
// one pure function that judges a request by them.
//
//	submitter ----> class ----> rule of the class ----> accepted: kind, slots
//	                mine         none, wasm, native      refused: Refusal
//	                allowed      slots at once
//	                members
//	                everyone
//
// The first class that fits counts. Mine is this peer itself, and so its owner's p2prun.
// Allowed are those whom the owner has listed. Members are those of a private network,
// of whom its owner has invited each; everyone is the rest. Denied submitters have
// no class: nothing is accepted from them, whatever other lists say (S3). To list somebody as
// allowed takes nothing from anybody else.
//
// A native program can do whatever its walls let it do; a WebAssembly module can name
// nothing outside of its memory and its scratch folder. So the rules are levels: none,
// then wasm, then native, which includes wasm.
//
// What holds at one time only, quiet hours and what package presence finds, refuses
// all but the owner. The reservation service judges each request for slots, before anything is
// sent; the launcher judges again by what the job turns out to be.
package policy
