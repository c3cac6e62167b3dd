// Package docs is the documentation for people; its tests compare it with the
// code.
//
//	mpj.md         tables of names                  <->  what package mpj exports
//	networking.md  every decoder has a fuzz target  <->  packages that decode, and fuzz targets
package docs
