// Package version says which release this is and which protocol it speaks.
package version
