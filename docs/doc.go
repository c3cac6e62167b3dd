// Package docs is the documentation for people; its tests compare it with the
// code.
//
//	mpj.md  tables of names  <->  what package mpj exports
package docs
