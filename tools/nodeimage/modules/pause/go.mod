module capi.invalid/pause

go 1.25.0
