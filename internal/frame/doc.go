// Package frame defines the frame: what one process of a job sends to another, whole and in order.
//
//	channels (mpj/channel) carry frames ---- header, payload ---- protocols give kinds their meaning
//
// A frame is a header of fixed size and a payload. The package knows no way by which a frame travels and no
// protocol that uses it, so that package protection and the protocols behind it need nothing else of channels.
package frame
