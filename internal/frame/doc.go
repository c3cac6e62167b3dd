// Package frame defines the frame, the unit that one process of a job sends to another, complete and in
// order.
//
//	channels (mpj/channel) carry frames ---- header, payload ---- protocols define the meaning of each kind
//
// A frame is a header of fixed size and a payload. The package does not depend on any channel or protocol, so
// package protection and the protocols that implement it do not depend on channels.
package frame
